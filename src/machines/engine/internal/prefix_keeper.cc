#include "engine/internal/prefix_keeper.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "engine/internal/kept_prefix.h"

namespace molly::engine {
namespace {

constexpr std::size_t queue_max = 64;
constexpr double byte_ms_at_first = 2e-6;  // half a gigabyte in a second, until it was measured
constexpr auto touch_every = std::chrono::minutes(1);
constexpr auto expire_every = std::chrono::hours(1);

std::string meta(const llama_model& model, const std::string& name) {
    std::array<char, 128> value{};
    const int length = llama_model_meta_val_str(&model, name.c_str(), value.data(), value.size());
    return length < 0 ? std::string() : std::string(value.data());
}

}  // namespace

std::string_view prefix_engine() noexcept {
    static const std::string engine =
        fmt::format("llama.cpp {}, state {}", MOLLY_LLAMA_VERSION, LLAMA_STATE_SEQ_VERSION);
    return engine;
}

std::string prefix_layout(const llama_model& model, const Limits& limits, bool together) {
    // Models with two sets of rotation factors choose by the length of the context.
    const std::string text = meta(model, fmt::format("{}.rope.scaling.original_context_length",
                                                     meta(model, "general.architecture")));
    std::uint32_t original = 0;
    std::from_chars(text.data(), text.data() + text.size(), original);
    const bool stretched = original != 0 && limits.context_tokens_max > original;
    return fmt::format("{}, {} sequences, adapters {} {}{}", prefix_engine(), limits.sequences_max,
                       limits.adapter_numbers == AdapterNumbers::int8 ? "int8" : "f16",
                       together ? "together" : "in turns", stretched ? ", long context" : "");
}

PrefixKeeper::PrefixKeeper(std::shared_ptr<PrefixStore> store, std::string layout,
                           std::shared_ptr<MemoryBudget> budget)
    : store_(std::move(store)),
      layout_(std::move(layout)),
      budget_(std::move(budget)),
      byte_ms_(byte_ms_at_first) {
    std::uint32_t others = 0;
    for (PrefixRecord& record : store_->list()) {
        if (record.layout != layout_) {
            ++others;
        } else {
            entries_.push_back({.record = std::move(record), .touched = {}});
        }
    }
    if (!entries_.empty() || others > 0) {
        log_event(LogLevel::info, "prefixes_found",
                  {{"usable", entries_.size()}, {"of_another_layout", others}});
    }
    thread_ = std::thread([this] { run(); });
}

PrefixKeeper::~PrefixKeeper() {
    stop();
}

void PrefixKeeper::stop() {
    {
        const std::scoped_lock lock(mutex_);
        stopping_ = true;
    }
    news_.notify_one();
    if (thread_.joinable()) thread_.join();
}

bool PrefixKeeper::post(std::function<void()> work) {
    {
        const std::scoped_lock lock(mutex_);
        if (stopping_ || queue_.size() >= queue_max) return false;
        queue_.push_back(std::move(work));
    }
    news_.notify_one();
    return true;
}

void PrefixKeeper::run() {
    std::unique_lock lock(mutex_);
    MonoTime expires = system_clock().now() + expire_every;
    for (;;) {
        news_.wait_until(lock, expires, [&] { return stopping_ || !queue_.empty(); });
        if (!queue_.empty()) {
            const auto work = std::move(queue_.front());
            queue_.pop_front();
            lock.unlock();
            work();
            lock.lock();
        } else if (stopping_) {
            return;
        }
        if (system_clock().now() < expires) continue;
        expires = system_clock().now() + expire_every;
        lock.unlock();
        store_->expire();
        lock.lock();
    }
}

std::optional<PrefixKeeper::Found> PrefixKeeper::find(const std::string& key,
                                                      std::span<const llama_token> prompt) {
    Found found;
    bool touches = false;
    {
        const std::scoped_lock lock(mutex_);
        Entry* best = nullptr;
        for (Entry& entry : entries_) {
            const PrefixRecord& record = entry.record;
            if (record.id.empty() || record.key != key) continue;
            const std::uint32_t usable = common_steps(record.tokens, prompt);
            const auto tokens = static_cast<std::uint32_t>(record.tokens.size());
            // Of two that help alike, the one that is read faster.
            if (usable == 0 || usable < found.usable) continue;
            if (usable == found.usable && tokens >= found.tokens) continue;
            found = {.id = record.id, .tokens = tokens, .usable = usable, .bytes = record.bytes};
            best = &entry;
        }
        if (best == nullptr) return std::nullopt;
        const MonoTime now = system_clock().now();
        touches = best->touched + touch_every <= now;
        if (touches) best->touched = now;
    }
    if (touches) {
        post([this, id = found.id] {
            if (!store_->touch(id)) erase(id);
        });
    }
    return found;
}

bool PrefixKeeper::saving(const std::string& key, std::span<const llama_token> beginning) const {
    const std::scoped_lock lock(mutex_);
    return std::ranges::any_of(entries_, [&](const Entry& entry) {
        const PrefixRecord& record = entry.record;
        return record.id.empty() && record.key == key && record.tokens.size() >= beginning.size() &&
               std::ranges::equal(std::span(record.tokens).first(beginning.size()), beginning);
    });
}

bool PrefixKeeper::pays(const Found& found, std::uint32_t held, double token_ms) {
    if (found.usable <= held) return false;
    const std::scoped_lock lock(mutex_);
    const double computing = (found.usable - held) * token_ms;
    if (static_cast<double>(found.bytes) * byte_ms_ < computing) return true;
    byte_ms_ *= 0.99;  // one slow moment of the disk is not for ever: it is tried again
    return false;
}

bool PrefixKeeper::fetch(const Found& found, Then then) {
    auto fetched = std::make_shared<FetchedPrefix>(budget_, found.id);
    if (!budget_->take(found.bytes)) return false;
    fetched->charged = found.bytes;
    fetched->tokens = found.tokens;
    fetched->usable = found.usable;
    return post([this, fetched = std::move(fetched), then = std::move(then)]() mutable {
        const MonoTime began = system_clock().now();
        auto bytes = store_->load(fetched->id);
        if (!bytes) {
            refuse(fetched->id, to_string(bytes.error().code()));
            fetched.reset();
            then(nullptr);
            return;
        }
        fetched->bytes = *std::move(bytes);
        const std::chrono::duration<double, std::milli> spent = system_clock().now() - began;
        fetched->load_ms = spent.count();
        then(std::move(fetched));
    });
}

void PrefixKeeper::took(std::uint64_t bytes, double milliseconds) {
    constexpr double fresh = 0.3;
    const std::scoped_lock lock(mutex_);
    ++counts_.loaded;
    if (bytes > 0) byte_ms_ += fresh * (milliseconds / static_cast<double>(bytes) - byte_ms_);
}

void PrefixKeeper::refuse(const std::string& id, std::string_view why) {
    log_event(LogLevel::warning, "prefix_refused", {{"id", id}, {"why", why}});
    {
        const std::scoped_lock lock(mutex_);
        ++counts_.refused;
    }
    erase(id);
}

void PrefixKeeper::erase(const std::string& id) {
    const std::scoped_lock lock(mutex_);
    std::erase_if(entries_, [&](const Entry& entry) { return entry.record.id == id; });
}

std::string_view PrefixKeeper::save(PrefixRecord record, const std::function<std::string()>& read) {
    if (!store_->keeps(record.sensitivity)) return prefix_word::class_forbids;
    if (record.bytes == 0 || record.bytes > store_->bytes_max()) return prefix_word::too_large;
    {
        const std::scoped_lock lock(mutex_);
        if (saving_ || stopping_) return prefix_word::busy;
        saving_ = true;
    }
    record.layout = layout_;
    const auto charge = std::make_shared<FetchedPrefix>(budget_, std::string());
    const bool room = budget_->take(record.bytes);
    if (room) {
        charge->charged = record.bytes;
        charge->bytes = read();
    }
    if (!room || charge->bytes.size() != record.bytes) {
        const std::scoped_lock lock(mutex_);
        saving_ = false;
        return prefix_word::no_memory;
    }
    {
        const std::scoped_lock lock(mutex_);
        entries_.push_back({.record = record, .touched = system_clock().now()});
    }
    const bool posted =
        post([this, record = std::move(record), charge] { write(record, charge->bytes); });
    if (posted) return prefix_word::saving;
    const std::scoped_lock lock(mutex_);
    std::erase_if(entries_, [](const Entry& entry) { return entry.record.id.empty(); });
    saving_ = false;
    return prefix_word::busy;
}

/// On the keeper's thread. One at a time, so the entry without an id is its own.
void PrefixKeeper::write(const PrefixRecord& record, const std::string& bytes) {
    auto id = store_->save(record, bytes);
    {
        const std::scoped_lock lock(mutex_);
        saving_ = false;
        const auto entry = std::ranges::find_if(
            entries_, [](const Entry& each) { return each.record.id.empty(); });
        if (entry != entries_.end() && id) entry->record.id = *id;
        if (entry != entries_.end() && !id) entries_.erase(entry);
        if (id) ++counts_.saved;
    }
    if (id) {
        log_event(LogLevel::info, "prefix_kept",
                  {{"id", *id}, {"tokens", record.tokens.size()}, {"bytes", bytes.size()}});
    } else {
        log_event(LogLevel::warning, "prefix_not_kept",
                  {{"code", to_string(id.error().code())}, {"why", id.error().message()}});
    }
}

StoredPrefixes PrefixKeeper::state() const {
    const std::scoped_lock lock(mutex_);
    StoredPrefixes state = counts_;
    for (const Entry& entry : entries_) {
        if (entry.record.id.empty()) continue;
        ++state.count;
        state.bytes += entry.record.bytes;
    }
    return state;
}

std::uint32_t PrefixKeeper::waiting() const {
    const std::scoped_lock lock(mutex_);
    return static_cast<std::uint32_t>(queue_.size());
}

}  // namespace molly::engine
