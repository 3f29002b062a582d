#include "engine/internal/hot_set.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace molly::engine {
namespace {

constexpr std::uint32_t usual_rank = 16;
constexpr std::size_t large_adapter = std::size_t{16} << 20U;
constexpr std::size_t reserve_max = std::size_t{64} << 20U;

}  // namespace

AdapterHold::AdapterHold(AdapterHold&& other) noexcept
    : set_(std::move(other.set_)),
      hash_(std::move(other.hash_)),
      adapter_(std::move(other.adapter_)) {}

AdapterHold& AdapterHold::operator=(AdapterHold&& other) noexcept {
    std::swap(set_, other.set_);
    std::swap(hash_, other.hash_);
    std::swap(adapter_, other.adapter_);
    return *this;
}

AdapterHold::~AdapterHold() {
    if (!set_) return;
    adapter_.reset();
    set_->give_back(hash_);
}

HotSet::HotSet(std::vector<LinearLayer> layers, std::shared_ptr<PageArena> arena,
               std::uint64_t bytes_max, std::shared_ptr<MemoryBudget> budget,
               AdapterNumbers numbers)
    : layers_(std::move(layers)),
      arena_(std::move(arena)),
      numbers_(numbers),
      bytes_max_(bytes_max),
      budget_(std::move(budget)) {
    reserve_ = std::min(usual_adapter_bytes(layers_, usual_rank, numbers_), reserve_max);
}

Result<std::shared_ptr<HotSet>> HotSet::make(std::vector<LinearLayer> layers,
                                             std::uint64_t bytes_max,
                                             std::shared_ptr<MemoryBudget> budget,
                                             AdapterNumbers numbers) {
    const bool large = usual_adapter_bytes(layers, usual_rank, numbers) >= large_adapter;
    TRY(auto arena,
        PageArena::make(bytes_max, large ? PageArena::huge_page : PageArena::small_page));
    if (budget == nullptr) budget = std::make_shared<MemoryBudget>(bytes_max);
    return std::shared_ptr<HotSet>(
        new HotSet(std::move(layers), std::move(arena), bytes_max, std::move(budget), numbers));
}

bool HotSet::is_hot(const std::string& hash) const {
    const auto found = entries_.find(hash);
    return found != entries_.end() && !found->second.doomed;
}

HotSet::Entries::iterator HotSet::find(const std::string& hash) {
    return is_hot(hash) ? entries_.find(hash) : entries_.end();
}

bool HotSet::ready(std::span<const AdapterUse> uses) const {
    const std::scoped_lock lock(mutex_);
    // Whoever waits for room goes first: hot adapters could keep it waiting for ever.
    return uses.empty() || (waiting_ == 0 && std::ranges::all_of(uses, [&](const AdapterUse& use) {
                                return is_hot(use.hash);
                            }));
}

Result<HotSet::Load> HotSet::open(const AdapterUse& use) const {
    Load load;
    if (whole_ == nullptr) {
        TRY(load.file, AdapterFile::open(use.file, layers_, numbers_));
        load.bytes = arena_->rounded(load.file->bytes());
        return load;
    }
    std::error_code ignored;
    const auto bytes = std::filesystem::file_size(use.file, ignored);
    load.bytes = ignored ? 1 : std::max<std::size_t>(bytes, 1);
    return load;
}

Result<std::shared_ptr<const HotAdapter>> HotSet::load(const AdapterUse& use,
                                                       const Load& load) const {
    return whole_ == nullptr ? load.file->load(*arena_) : HotAdapter::load_whole(use.file, *whole_);
}

AdapterHold HotSet::hold(Entries::iterator entry) {
    ++entry->second.holds;
    return AdapterHold(shared_from_this(), entry->first, entry->second.adapter);
}

/// Opens the files of those that are not hot; the lock is let go meanwhile.
Result<std::vector<HotSet::Load>> HotSet::look(std::unique_lock<std::mutex>& lock,
                                               std::span<const AdapterUse> uses) {
    std::vector<Load> loads;
    for (const AdapterUse& use : uses) {
        if (const auto hot = find(use.hash); hot != entries_.end()) {
            loads.push_back({.file = std::nullopt, .bytes = hot->second.bytes, .missing = false});
            continue;
        }
        lock.unlock();
        TRY(Load load, open(use));
        lock.lock();
        loads.push_back(std::move(load));
    }
    return loads;
}

Result<void> HotSet::check_fits(std::span<const AdapterUse> uses,
                                std::span<const Load> loads) const {
    std::uint64_t bytes = 0;
    for (const Load& load : loads)
        bytes += load.bytes;
    std::uint64_t pinned = 0;
    for (const auto& [hash, entry] : entries_) {
        const bool asked =
            std::ranges::any_of(uses, [&](const AdapterUse& use) { return use.hash == hash; });
        if (entry.pinned && !asked) pinned += entry.bytes;
    }
    const std::uint64_t most = std::min(bytes_max_, budget_->bytes_max());
    if (bytes + pinned <= most) return {};
    const auto mib = [](std::uint64_t value) { return static_cast<double>(value) / 1048576; };
    std::string ids;
    for (const AdapterUse& use : uses)
        ids += (ids.empty() ? "" : ", ") + use.id;
    return fail(
        Error(ErrorCode::exhausted,
              fmt::format("the adapter {} needs {:.1f} MiB, {:.1f} of {:.1f} MiB are pinned; "
                          "raise engine.memory_mib (and adapter_memory_mib), or pin fewer adapters",
                          ids, mib(bytes), mib(pinned), mib(most)))
            .italian(fmt::format(
                "l'adattatore {} vuole {:.1f} MiB; {:.1f} di {:.1f} MiB sono "
                "fissati; alzare engine.memory_mib (e adapter_memory_mib) o fissarne meno",
                ids, mib(bytes), mib(pinned), mib(most))));
}

Result<std::vector<AdapterHold>> HotSet::take(std::span<const AdapterUse> uses,
                                              const std::function<bool()>& wanted) {
    std::vector<AdapterHold> held(uses.size());  // given back after the lock
    std::unique_lock lock(mutex_);
    for (const AdapterUse& use : uses)
        reuse_.asked(use.hash);
    const auto hot = [&](const AdapterUse& use) { return is_hot(use.hash); };
    std::unique_lock alone(loading_, std::defer_lock);
    if (!std::ranges::all_of(uses, hot)) {
        lock.unlock();
        alone.lock();
        lock.lock();
    }
    std::vector<Load> loads;
    for (;;) {
        TRY(loads, look(lock, uses));
        TRY_DO(check_fits(uses, loads));
        std::size_t missing = 0;
        for (const Load& load : loads)
            missing += load.missing ? load.bytes : 0;
        // Nothing is held while it waits: what runs may need that very memory to come to its end.
        TRY_DO(make_room(lock, missing, uses, wanted));
        const bool as_it_was = std::ranges::equal(
            uses, loads,
            [&](const auto& use, const auto& load) { return is_hot(use.hash) != load.missing; });
        bytes_ += missing;
        if (as_it_was) break;
        bytes_ -= missing;
        if (whole_ != nullptr) give(missing);
    }
    for (std::size_t i = 0; i < uses.size(); ++i) {
        if (loads[i].missing) continue;
        ++counts_.hits;
        const auto entry = find(uses[i].hash);
        entry->second.pinned = uses[i].pinned;
        held[i] = hold(entry);
    }
    std::optional<Error> error;
    for (std::size_t i = 0; i < uses.size(); ++i) {
        if (!loads[i].missing) continue;
        if (error) {
            forgo(loads[i].bytes);
            continue;
        }
        auto one = load_one(lock, uses[i], loads[i]);
        if (one) {
            held[i] = *std::move(one);
        } else {
            error = std::move(one).error();
        }
    }
    // Not before: what is charged is for all of them.
    if (alone.owns_lock()) settle();
    if (error) return fail(*std::move(error));
    return held;
}

/// Room that was made and is not used.
void HotSet::forgo(std::size_t bytes) {
    bytes_ -= bytes;
    if (whole_ != nullptr) give(bytes);
    given_back_.notify_all();
}

/// Loads into room that was made; the lock is let go meanwhile.
Result<AdapterHold> HotSet::load_one(std::unique_lock<std::mutex>& lock, const AdapterUse& use,
                                     const Load& load) {
    lock.unlock();
    const auto started = std::chrono::steady_clock::now();
    auto loaded = this->load(use, load);
    const std::chrono::duration<double, std::milli> took =
        std::chrono::steady_clock::now() - started;
    lock.lock();
    if (!loaded) {
        forgo(load.bytes);
        return fail(std::move(loaded).error());
    }
    ++counts_.loads;
    counts_.load_ms_last = took.count();
    reserve_ = std::min(std::max(reserve_, load.bytes), reserve_max);
    // A doomed one under the same hash is still held by somebody: it lives on without a name.
    if (const auto old = entries_.find(use.hash); old != entries_.end()) {
        forgo(load.bytes);
        old->second.doomed = false;
        return hold(old);
    }
    const auto entry = entries_
                           .emplace(use.hash, Entry{.adapter = *std::move(loaded),
                                                    .file = use.file,
                                                    .holds = 0,
                                                    .bytes = load.bytes,
                                                    .load_ms = took.count(),
                                                    .pinned = use.pinned,
                                                    .doomed = false})
                           .first;
    return hold(entry);
}

Result<void> HotSet::make_room(std::unique_lock<std::mutex>& lock, std::size_t bytes,
                               std::span<const AdapterUse> uses,
                               const std::function<bool()>& wanted) {
    if (bytes == 0) return {};
    // Whether the caller has gone is asked; memory that is given back is told.
    constexpr auto look_again = std::chrono::milliseconds(20);
    ++waiting_;
    Result<void> made;
    for (;;) {
        const bool below = bytes_ + bytes <= bytes_max_;
        if (below && charge(bytes)) break;
        if (stopping_ || !wanted()) {
            made = fail(ErrorCode::cancelled, "the adapter is not wanted any more");
            break;
        }
        // Below its own limit the room may come from the prefixes, if they are worth less.
        const auto victim = least(uses);
        const double mine = victim == entries_.end() ? nothing_to_lose : worth(*victim);
        if (victim != entries_.end() && (!below || mine <= budget_->prefix_worth())) {
            ++counts_.evictions;
            erase(victim);
            continue;
        }
        if (below) {
            budget_->wish(bytes);
            if (wake_) wake_();
        }
        given_back_.wait_for(lock, look_again);
    }
    budget_->wish(0);
    --waiting_;
    return made;
}

/// Takes from the budget what a load needs beyond the free memory that is at hand.
bool HotSet::charge(std::size_t bytes) {
    if (budget_->claimed()) return false;
    settle();
    const std::size_t ready = arena_ ? arena_->ready() : 0;
    const std::size_t more = bytes - std::min(bytes, ready);
    if (!budget_->take(more)) return false;
    charged_ += more;
    if (arena_) arena_->allow(charged_);
    return true;
}

/// Brings what is charged to what lies in memory.
void HotSet::settle() {
    if (!arena_) return;
    const std::uint64_t there = arena_->used() + arena_->ready();
    if (there > charged_) budget_->charge(there - charged_);
    if (there < charged_) budget_->give_back(charged_ - there);
    charged_ = there;
}

void HotSet::give(std::uint64_t bytes) {
    budget_->give_back(bytes);
    charged_ -= bytes;
}

void HotSet::prepare() {
    if (!arena_) return;
    const std::scoped_lock alone(loading_);
    std::size_t reserve = 0;
    {
        const std::scoped_lock lock(mutex_);
        reserve = std::min<std::uint64_t>(reserve_, bytes_max_ - std::min(bytes_max_, bytes_));
        if (!charge(reserve)) return;
    }
    arena_->prepare(reserve);
    const std::scoped_lock lock(mutex_);
    settle();
}

/// What nobody asks for soon goes back to the system, but for one load's memory.
void HotSet::spare() {
    const std::unique_lock alone(loading_, std::try_to_lock);
    if (!arena_ || !alone.owns_lock()) return;
    arena_->trim(reserve_);
    settle();
}

double HotSet::worth(const Entries::value_type& entry) const {
    return reuse_.worth(entry.first, entry.second.load_ms, entry.second.bytes);
}

/// Which nobody holds and is worth least, but for the spared ones.
HotSet::Entries::const_iterator HotSet::least(std::span<const AdapterUse> spared) const {
    auto least = entries_.end();
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
        const bool wanted = std::ranges::any_of(
            spared, [&](const AdapterUse& use) { return use.hash == entry->first; });
        if (wanted || entry->second.holds > 0 || entry->second.pinned) continue;
        if (least == entries_.end() || worth(*entry) < worth(*least)) least = entry;
    }
    return least;
}

/// Whether nobody loads, so that what is charged can be brought to what lies in memory: who waits
/// for room does not.
bool HotSet::still(const std::unique_lock<std::mutex>& alone) const {
    return alone.owns_lock() || waiting_ > 0;
}

double HotSet::least_worth() const {
    const std::unique_lock alone(loading_, std::try_to_lock);
    const std::scoped_lock lock(mutex_);
    if (!still(alone)) return nothing_to_lose;
    if (arena_ && arena_->ready() > 0) return 0;
    const auto victim = least({});
    return victim == entries_.end() ? nothing_to_lose : worth(*victim);
}

bool HotSet::yield_room(std::uint64_t bytes) {
    const std::unique_lock alone(loading_, std::try_to_lock);
    const std::scoped_lock lock(mutex_);
    if (!still(alone)) return false;
    const std::uint64_t before = charged_;
    if (arena_) arena_->trim(0);
    settle();
    while (before - charged_ < bytes) {
        const auto victim = least({});
        if (victim == entries_.end()) break;
        ++counts_.evictions;
        erase(victim);
        if (arena_) arena_->trim(0);
        settle();
    }
    return charged_ < before;
}

void HotSet::erase(Entries::const_iterator entry) {
    bytes_ -= entry->second.bytes;
    if (whole_ != nullptr) give(entry->second.bytes);
    entries_.erase(entry);
}

void HotSet::give_back(const std::string& hash) {
    {
        const std::scoped_lock lock(mutex_);
        const auto found = entries_.find(hash);
        if (found == entries_.end()) return;
        Entry& entry = found->second;
        --entry.holds;
        std::error_code ignored;
        // An adapter that was removed from the disk cannot be asked for again.
        const bool gone = entry.holds == 0 && !std::filesystem::exists(entry.file, ignored);
        if (entry.holds == 0 && (entry.doomed || gone)) erase(found);
        if (waiting_ == 0) spare();
    }
    given_back_.notify_all();
}

void HotSet::drop(const std::string& hash) {
    {
        const std::scoped_lock lock(mutex_);
        const auto found = entries_.find(hash);
        if (found == entries_.end()) return;
        found->second.doomed = true;
        if (found->second.holds == 0) erase(found);
        spare();
    }
    given_back_.notify_all();
}

void HotSet::stop() {
    {
        const std::scoped_lock lock(mutex_);
        stopping_ = true;
    }
    given_back_.notify_all();
}

AdapterMemory HotSet::state() const {
    const std::scoped_lock lock(mutex_);
    AdapterMemory state = counts_;
    state.hot = static_cast<std::uint32_t>(entries_.size());
    state.bytes = bytes_;
    state.bytes_max = std::min(bytes_max_, budget_->bytes_max());
    for (const auto& [hash, entry] : entries_)
        if (entry.pinned) state.bytes_pinned += entry.bytes;
    state.waiting = waiting_;
    state.spare = arena_ ? arena_->ready() : 0;
    return state;
}

}  // namespace molly::engine
