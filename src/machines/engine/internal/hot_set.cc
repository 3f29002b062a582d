#include "engine/internal/hot_set.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace molly::engine {

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

bool HotSet::ready(const std::string& hash) const {
    const std::scoped_lock lock(mutex_);
    const auto found = entries_.find(hash);
    // Whoever waits for room goes first: hot adapters could keep it waiting for ever.
    return waiting_ == 0 && found != entries_.end() && !found->second.doomed;
}

Result<std::size_t> HotSet::bytes_of(const std::filesystem::path& file) const {
    if (whole_ == nullptr) return hot_bytes_of(file, layers_);
    std::error_code ignored;
    const auto bytes = std::filesystem::file_size(file, ignored);
    return ignored ? 1 : std::max<std::size_t>(bytes, 1);
}

Result<std::shared_ptr<const HotAdapter>> HotSet::load(const std::filesystem::path& file) const {
    return whole_ == nullptr ? HotAdapter::load(file, layers_)
                             : HotAdapter::load_whole(file, *whole_);
}

AdapterHold HotSet::hold(Entries::iterator entry) {
    ++entry->second.holds;
    return AdapterHold(shared_from_this(), entry->first, entry->second.adapter);
}

Result<AdapterHold> HotSet::take(const AdapterUse& use, const std::function<bool()>& wanted) {
    std::unique_lock lock(mutex_);
    reuse_.asked(use.hash);
    if (const auto found = entries_.find(use.hash);
        found != entries_.end() && !found->second.doomed) {
        ++counts_.hits;
        found->second.pinned = use.pinned;
        return hold(found);
    }
    lock.unlock();
    TRY(const std::size_t bytes, bytes_of(use.file));
    lock.lock();
    TRY_DO(make_room(lock, use.id, bytes, wanted));
    bytes_ += bytes;
    lock.unlock();
    const auto started = std::chrono::steady_clock::now();
    auto loaded = load(use.file);
    const std::chrono::duration<double, std::milli> took =
        std::chrono::steady_clock::now() - started;
    lock.lock();
    if (!loaded) {
        bytes_ -= bytes;
        given_back_.notify_all();
        return fail(std::move(loaded).error());
    }
    ++counts_.loads;
    counts_.load_ms_last = took.count();
    // A doomed one under the same hash is still held by somebody: it lives on without a name.
    if (const auto old = entries_.find(use.hash); old != entries_.end()) {
        bytes_ -= bytes;
        old->second.doomed = false;
        return hold(old);
    }
    const auto entry = entries_
                           .emplace(use.hash, Entry{.adapter = *std::move(loaded),
                                                    .file = use.file,
                                                    .holds = 0,
                                                    .bytes = bytes,
                                                    .load_ms = took.count(),
                                                    .pinned = use.pinned,
                                                    .doomed = false})
                           .first;
    return hold(entry);
}

Result<void> HotSet::make_room(std::unique_lock<std::mutex>& lock, const std::string& id,
                               std::size_t bytes, const std::function<bool()>& wanted) {
    // Whether the caller has gone is asked; memory that is given back is told.
    constexpr auto look_again = std::chrono::milliseconds(20);
    std::uint64_t pinned = 0;
    for (const auto& [hash, entry] : entries_)
        if (entry.pinned) pinned += entry.bytes;
    if (bytes + pinned > bytes_max_) {
        return fail(
            Error(ErrorCode::exhausted,
                  fmt::format("the adapter {} needs {:.1f} MiB, {:.1f} of {:.1f} MiB are pinned; "
                              "raise engine.adapter_memory_mib or pin fewer adapters",
                              id, static_cast<double>(bytes) / 1048576,
                              static_cast<double>(pinned) / 1048576,
                              static_cast<double>(bytes_max_) / 1048576))
                .italian(fmt::format("l'adattatore {} vuole {:.1f} MiB; {:.1f} di {:.1f} MiB sono "
                                     "fissati; alzare engine.adapter_memory_mib o fissarne meno",
                                     id, static_cast<double>(bytes) / 1048576,
                                     static_cast<double>(pinned) / 1048576,
                                     static_cast<double>(bytes_max_) / 1048576)));
    }
    ++waiting_;
    while (bytes_ + bytes > bytes_max_) {
        if (stopping_ || !wanted()) {
            --waiting_;
            return fail(ErrorCode::cancelled, "the adapter is not wanted any more");
        }
        if (!evict_one()) given_back_.wait_for(lock, look_again);
    }
    --waiting_;
    return {};
}

bool HotSet::evict_one() {
    auto victim = entries_.end();
    double least = 0;
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
        const Entry& one = entry->second;
        if (one.holds > 0 || one.pinned) continue;
        const double worth = reuse_.worth(entry->first, one.load_ms, one.bytes);
        if (victim != entries_.end() && worth >= least) continue;
        victim = entry;
        least = worth;
    }
    if (victim == entries_.end()) return false;
    ++counts_.evictions;
    erase(victim);
    return true;
}

void HotSet::erase(Entries::iterator entry) {
    bytes_ -= entry->second.bytes;
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
    state.bytes_max = bytes_max_;
    state.waiting = waiting_;
    return state;
}

}  // namespace molly::engine
