#pragma once
// Keeps beginnings of prompts in a PrefixStore: knows which are there, reads and writes them on a
// thread of its own. Safe from any thread.
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <llama.h>

#include "base/clock.h"
#include "engine/engine.h"
#include "engine/internal/memory_budget.h"

namespace molly::engine {

/// What is said of a beginning that was to be kept: domain::Response lists the words.
namespace prefix_word {
inline constexpr std::string_view kept = "kept";
inline constexpr std::string_view saving = "saving";
inline constexpr std::string_view class_forbids = "class_forbids";
inline constexpr std::string_view too_short = "too_short";
inline constexpr std::string_view too_large = "too_large";
inline constexpr std::string_view no_memory = "no_memory";
inline constexpr std::string_view busy = "busy";
inline constexpr std::string_view deterministic = "deterministic";
inline constexpr std::string_view off = "off";
}  // namespace prefix_word

/// The bytes of one beginning. They are charged to the budget as long as they are there.
struct FetchedPrefix {
    FetchedPrefix(std::shared_ptr<MemoryBudget> of, std::string from) noexcept
        : budget(std::move(of)), id(std::move(from)) {}
    FetchedPrefix(const FetchedPrefix&) = delete;
    FetchedPrefix& operator=(const FetchedPrefix&) = delete;
    ~FetchedPrefix() { budget->give_back(charged); }

    const std::shared_ptr<MemoryBudget> budget;
    const std::string id;
    std::uint64_t charged = 0;
    std::string bytes;
    std::uint32_t tokens = 0;  ///< that the bytes hold
    std::uint32_t usable = 0;  ///< of them, those that the prompt begins with too
    double load_ms = 0;
};

class PrefixKeeper {
public:
    PrefixKeeper(std::shared_ptr<PrefixStore> store, std::string layout,
                 std::shared_ptr<MemoryBudget> budget);
    PrefixKeeper(const PrefixKeeper&) = delete;
    PrefixKeeper& operator=(const PrefixKeeper&) = delete;
    ~PrefixKeeper();
    /// Ends what was begun, then the thread. What is asked for later is refused.
    void stop();

    struct Found {
        std::string id;
        std::uint32_t tokens = 0;  ///< that it holds
        std::uint32_t usable = 0;  ///< of them, those that the prompt begins with too
        std::uint64_t bytes = 0;
    };
    /// The file with the longest beginning of the prompt.
    std::optional<Found> find(const std::string& key, std::span<const llama_token> prompt);
    /// Whether that beginning is on its way to the disk.
    bool saving(const std::string& key, std::span<const llama_token> beginning) const;

    /// Whether reading it takes less than computing what nobody in memory holds, by what both took
    /// here so far.
    bool pays(const Found& found, std::uint32_t held, double token_ms);
    using Then = std::function<void(std::shared_ptr<const FetchedPrefix>)>;
    /// Reads it and calls `then`, with null when it cannot be read; on this keeper's thread. False:
    /// there is no memory for it, or too many are read already, and `then` is not called.
    bool fetch(const Found& found, Then then);
    /// What reading it took, altogether.
    void took(std::uint64_t bytes, double milliseconds);
    /// It does not fit this engine: nobody gets it again.
    void refuse(const std::string& id, std::string_view why);

    /// Reads the bytes at once, if they may be kept, and writes them later. Gives the word for it.
    std::string_view save(PrefixRecord record, const std::function<std::string()>& read);

    StoredPrefixes state() const;
    std::uint32_t waiting() const;

private:
    struct Entry {
        PrefixRecord record;  // without an id while it is written
        MonoTime touched;
    };
    bool post(std::function<void()> work);
    void run();
    void erase(const std::string& id);
    void write(const PrefixRecord& record, const std::string& bytes);

    const std::shared_ptr<PrefixStore> store_;
    const std::string layout_;
    const std::shared_ptr<MemoryBudget> budget_;
    mutable std::mutex mutex_;
    std::condition_variable news_;
    bool stopping_ = false;
    bool saving_ = false;
    std::deque<std::function<void()>> queue_;
    std::vector<Entry> entries_;
    StoredPrefixes counts_;
    double byte_ms_;
    std::thread thread_;
};

/// How this engine's keys and values lie in memory and what they were computed by, besides what a
/// prefix's key says. Bytes of another layout mean nothing to it.
std::string prefix_layout(const llama_model& model, const Limits& limits, bool together);

}  // namespace molly::engine
