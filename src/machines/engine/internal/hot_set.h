#pragma once
// The adapters that are in memory now, within a budget. Requests hold what they use; what nobody
// holds goes when another one needs the room, the least worth first. Safe from any thread.
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "engine/internal/hot_adapter.h"
#include "engine/internal/memory_budget.h"
#include "engine/internal/reuse.h"

namespace molly::engine {

class HotSet;

/// The right to use one adapter in memory, until it is destroyed.
class AdapterHold {
public:
    AdapterHold() = default;
    AdapterHold(AdapterHold&& other) noexcept;
    AdapterHold& operator=(AdapterHold&& other) noexcept;
    AdapterHold(const AdapterHold&) = delete;
    AdapterHold& operator=(const AdapterHold&) = delete;
    ~AdapterHold();

    const HotAdapter* get() const noexcept { return adapter_.get(); }
    const std::string& hash() const noexcept { return hash_; }

private:
    friend class HotSet;
    AdapterHold(std::shared_ptr<HotSet> set, std::string hash,
                std::shared_ptr<const HotAdapter> adapter)
        : set_(std::move(set)), hash_(std::move(hash)), adapter_(std::move(adapter)) {}

    std::shared_ptr<HotSet> set_;
    std::string hash_;
    std::shared_ptr<const HotAdapter> adapter_;
};

class HotSet : public std::enable_shared_from_this<HotSet> {
public:
    /// For the kernels, which can change `layers`. Errors: exhausted.
    static Result<std::shared_ptr<HotSet>> make(std::vector<LinearLayer> layers,
                                                std::uint64_t bytes_max,
                                                std::shared_ptr<MemoryBudget> budget = nullptr,
                                                AdapterNumbers numbers = AdapterNumbers::f16);
    /// For llama.cpp's own way, one adapter at a time.
    HotSet(WholeModel& model, std::uint64_t bytes_max, std::shared_ptr<MemoryBudget> budget)
        : whole_(&model), bytes_max_(bytes_max), budget_(std::move(budget)) {}
    HotSet(const HotSet&) = delete;
    HotSet& operator=(const HotSet&) = delete;
    ~HotSet() = default;

    /// Whether `take` would neither load nor wait.
    bool ready(std::span<const AdapterUse> uses) const;
    /// Loads what is not here and waits for room while `wanted` says so. Errors: those of
    /// HotAdapter::load; exhausted (with numbers: they can never fit beside what is pinned);
    /// cancelled. shape: [uses]
    Result<std::vector<AdapterHold>> take(std::span<const AdapterUse> uses,
                                          const std::function<bool()>& wanted);
    /// Has memory at hand for the next load, so that it meets no page faults.
    void prepare();
    /// `wake` is called when room is wished for that prefixes take. Before any use.
    void on_wish(std::function<void()> wake) { wake_ = std::move(wake); }

    /// The worth of what would go first here.
    double least_worth() const;
    /// Gives up to `bytes` that nobody holds back to the budget; whether it gave any. Never waits.
    bool yield_room(std::uint64_t bytes);
    /// Whoever waits looks again.
    void room_was_made() { given_back_.notify_all(); }
    /// Forgets one as soon as nobody holds it.
    void drop(const std::string& hash);
    /// Whoever waits for room gives up.
    void stop();
    AdapterMemory state() const;

private:
    friend class AdapterHold;
    struct Entry {
        std::shared_ptr<const HotAdapter> adapter;
        std::filesystem::path file;
        std::uint32_t holds = 0;
        std::size_t bytes = 0;
        double load_ms = 0;
        bool pinned = false;
        bool doomed = false;
    };
    using Entries = std::map<std::string, Entry>;
    struct Load {
        std::optional<AdapterFile> file;  // opened, where it has to be loaded for the kernels
        std::size_t bytes = 0;
        bool missing = true;
    };

    HotSet(std::vector<LinearLayer> layers, std::shared_ptr<PageArena> arena,
           std::uint64_t bytes_max, std::shared_ptr<MemoryBudget> budget, AdapterNumbers numbers);

    void give_back(const std::string& hash);
    AdapterHold hold(Entries::iterator entry);
    Entries::iterator find(const std::string& hash);
    bool is_hot(const std::string& hash) const;
    Result<std::vector<Load>> look(std::unique_lock<std::mutex>& lock,
                                   std::span<const AdapterUse> uses);
    Result<void> check_fits(std::span<const AdapterUse> uses, std::span<const Load> loads) const;
    Result<AdapterHold> load_one(std::unique_lock<std::mutex>& lock, const AdapterUse& use,
                                 const Load& load);
    void forgo(std::size_t bytes);
    Result<void> make_room(std::unique_lock<std::mutex>& lock, std::size_t bytes,
                           std::span<const AdapterUse> uses, const std::function<bool()>& wanted);
    bool charge(std::size_t bytes);
    void settle();
    void give(std::uint64_t bytes);
    double worth(const Entries::value_type& entry) const;
    Entries::const_iterator least(std::span<const AdapterUse> spared) const;
    void erase(Entries::const_iterator entry);
    void spare();
    bool still(const std::unique_lock<std::mutex>& alone) const;

    Result<Load> open(const AdapterUse& use) const;
    Result<std::shared_ptr<const HotAdapter>> load(const AdapterUse& use, const Load& load) const;

    const std::vector<LinearLayer> layers_;
    const std::shared_ptr<PageArena> arena_;  // null in llama.cpp's own way
    WholeModel* const whole_ = nullptr;
    const AdapterNumbers numbers_ = AdapterNumbers::f16;
    const std::uint64_t bytes_max_;
    const std::shared_ptr<MemoryBudget> budget_;
    std::function<void()> wake_;
    // One request loads at a time: two that hold what the other waits for would wait for ever.
    mutable std::mutex loading_;
    mutable std::mutex mutex_;
    std::condition_variable given_back_;
    bool stopping_ = false;
    Entries entries_;
    std::uint64_t bytes_ = 0;    // of entries, and of what is being loaded
    std::uint64_t charged_ = 0;  // of the budget
    std::size_t reserve_ = 0;    // free bytes that should lie in memory
    std::uint32_t waiting_ = 0;
    Reuse reuse_;
    AdapterMemory counts_;
};

}  // namespace molly::engine
