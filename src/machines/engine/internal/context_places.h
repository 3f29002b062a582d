#pragma once
// The places of the context, one for each running sequence: what a free one still holds, how much
// memory each has, and which gives its memory up when others need it. Belongs to the engine thread.
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/internal/cache_memory.h"
#include "engine/internal/hot_set.h"
#include "engine/internal/kept_prefix.h"
#include "engine/internal/memory_budget.h"
#include "engine/internal/model.h"
#include "engine/internal/prefix_keeper.h"
#include "engine/internal/reuse.h"

namespace molly::engine {

class ContextPlaces {
public:
    /// Tokens of memory that come and go together.
    static constexpr std::uint32_t block = prefix_step;

    /// All of it outlives this. Gives the whole cache back to the system first.
    ContextPlaces(llama_context& context, CacheMemory memory, std::uint32_t places,
                  std::uint32_t context_tokens_max, MemoryBudget& budget,
                  std::shared_ptr<HotSet> hot);

    /// What a place holds; tokens are added as they are computed.
    KeptPrefix& at(std::size_t place) { return kept_[place]; }
    std::uint32_t owned(std::size_t place) const { return owned_[place]; }

    struct Arrival {
        std::span<const std::size_t> free;  ///< at least one
        const std::string& key;
        std::span<const Token> prompt;
        std::uint32_t tokens = 0;                ///< of memory that it begins with
        bool reuse = true;                       ///< of what a place holds
        const FetchedPrefix* fetched = nullptr;  ///< goes into the place, if that gives more
    };
    struct Start {
        std::size_t place = 0;
        std::uint32_t reused = 0;
        double restore_ms = 0;  ///< it took to put what was fetched there; 0: it was not
        bool refused = false;   ///< what was fetched does not fit this context
    };
    /// Gives a free place to a request, the one whose content it can use if there is one, with
    /// memory. Nothing when there is too little.
    std::optional<Start> start(const Arrival& arrival);
    /// Tokens at the prompt's beginning that a free place holds.
    std::uint32_t held(std::span<const std::size_t> free, const std::string& key,
                       std::span<const Token> prompt) const {
        return choose_place(kept_, free, key, prompt).reused;
    }
    /// The place is free; what it holds stays, for who begins alike, if anybody knows what that is.
    void release(std::size_t place, bool known);
    /// Forgets what a place holds and gives its memory back; how many tokens that is.
    std::uint32_t drop(std::size_t place);

    /// Gets memory for up to `tokens` (whole blocks), from the least worth of idle prefixes and
    /// adapters if need be; how many tokens it is.
    std::uint32_t get(std::uint32_t tokens);
    void give(std::uint32_t tokens) { budget_.give_back(tokens * bytes_per_token_); }
    /// The place may use so many more tokens of what was got.
    void own(std::size_t place, std::uint32_t tokens) { owned_[place] += tokens; }
    /// Whether there is memory for one more token in the place, without taking it from anybody.
    bool may_lend_row(std::size_t place) const;
    /// Takes that memory, which the place keeps. False: it has gone meanwhile.
    bool lend_row(std::size_t place);
    /// Takes back what was computed behind the first `tokens` of the place.
    void rewind(std::size_t place, std::size_t tokens);
    /// Drops idle prefixes for what the adapters wait for: they have compared the worths.
    void fulfil_wish();

    /// How long one prompt token takes, for the worth of what would be computed again.
    void took(double milliseconds, std::uint32_t tokens);
    double token_ms() const noexcept { return token_ms_; }
    std::uint64_t bytes_per_token() const noexcept { return bytes_per_token_; }
    /// Bytes of all places, and of those that only keep prefixes. From any thread.
    std::uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }
    std::uint64_t idle_bytes() const noexcept {
        return idle_bytes_.load(std::memory_order_relaxed);
    }
    const CacheMemory& memory() const noexcept { return memory_; }

private:
    std::uint32_t cut(const Arrival& arrival, const PlaceChoice& choice);
    bool restore(const Arrival& arrival, Start& start);
    double worth(std::size_t place) const;
    std::size_t least_worth() const;
    void publish();

    llama_context& context_;
    const CacheMemory memory_;
    MemoryBudget& budget_;
    const std::shared_ptr<HotSet> hot_;
    const std::uint32_t context_tokens_max_;
    std::uint64_t bytes_per_token_ = 1;
    std::vector<KeptPrefix> kept_;      // shape: [places]
    std::vector<std::uint32_t> owned_;  // shape: [places]
    std::vector<bool> busy_;            // shape: [places]
    std::uint64_t started_ = 0;         // requests
    double token_ms_ = 1;
    Reuse reuse_;
    std::atomic<std::uint64_t> bytes_ = 0;
    std::atomic<std::uint64_t> idle_bytes_ = 0;
};

}  // namespace molly::engine
