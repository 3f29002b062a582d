#pragma once
// The adapters that are in memory now, within a budget. Requests hold what they use; what nobody
// holds goes when another one needs the room, the least worth first. Safe from any thread.
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "engine/internal/hot_adapter.h"
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

    /// Null: the base alone.
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
    /// For the kernels, which can change `layers`.
    HotSet(std::vector<LinearLayer> layers, std::uint64_t bytes_max)
        : layers_(std::move(layers)), bytes_max_(bytes_max) {}
    /// For llama.cpp's own way, one adapter at a time.
    HotSet(WholeModel& model, std::uint64_t bytes_max) : whole_(&model), bytes_max_(bytes_max) {}
    HotSet(const HotSet&) = delete;
    HotSet& operator=(const HotSet&) = delete;
    ~HotSet() = default;

    /// Whether `take` would neither load nor wait.
    bool ready(const std::string& hash) const;
    /// Loads what is not here and waits for room while `wanted` says so. Errors: those of
    /// HotAdapter::load; exhausted (with numbers: it can never fit beside what is pinned);
    /// cancelled.
    Result<AdapterHold> take(const AdapterUse& use, const std::function<bool()>& wanted);
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

    void give_back(const std::string& hash);
    AdapterHold hold(Entries::iterator entry);
    Result<void> make_room(std::unique_lock<std::mutex>& lock, const std::string& id,
                           std::size_t bytes, const std::function<bool()>& wanted);
    bool evict_one();
    void erase(Entries::iterator entry);

    Result<std::size_t> bytes_of(const std::filesystem::path& file) const;
    Result<std::shared_ptr<const HotAdapter>> load(const std::filesystem::path& file) const;

    const std::vector<LinearLayer> layers_;
    WholeModel* const whole_ = nullptr;
    const std::uint64_t bytes_max_;
    mutable std::mutex mutex_;
    std::condition_variable given_back_;
    bool stopping_ = false;
    Entries entries_;
    std::uint64_t bytes_ = 0;  // of entries, and of what is being loaded
    std::uint32_t waiting_ = 0;
    Reuse reuse_;
    AdapterMemory counts_;
};

}  // namespace molly::engine
