#include "engine/internal/context_places.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/clock.h"
#include "engine/internal/plan_step.h"

namespace molly::engine {

ContextPlaces::ContextPlaces(llama_context& context, CacheMemory memory, std::uint32_t places,
                             std::uint32_t context_tokens_max, MemoryBudget& budget,
                             std::shared_ptr<HotSet> hot)
    : context_(context),
      memory_(std::move(memory)),
      budget_(budget),
      hot_(std::move(hot)),
      context_tokens_max_(context_tokens_max),
      kept_(places),
      owned_(places, 0),
      busy_(places, false) {
    if (memory_.usable()) {
        bytes_per_token_ = std::max<std::uint64_t>(1, memory_.bytes_per_token());
        memory_.release_all();
        return;
    }
    // Nothing can be given back, so all of it is everybody's from the start.
    owned_.assign(places, in_blocks(context_tokens_max, block));
}

std::optional<ContextPlaces::Start> ContextPlaces::start(const Arrival& arrival) {
    PlaceChoice choice = choose_place(kept_, arrival.free, arrival.key, arrival.prompt);
    const bool restores = arrival.fetched != nullptr && arrival.fetched->usable > choice.reused;
    // What it would overwrite is what was used longest ago.
    if (restores) choice = choose_place(kept_, arrival.free, {}, {});
    busy_[choice.place] = true;  // so that nobody takes its memory meanwhile
    const std::uint32_t tokens =
        std::max(arrival.tokens, restores ? arrival.fetched->tokens : std::uint32_t{0});
    const std::uint32_t wanted = in_blocks(tokens, block);
    const std::uint32_t missing = wanted - std::min(wanted, owned_[choice.place]);
    const std::uint32_t got = get(missing);
    if (got < missing) {
        give(got);
        busy_[choice.place] = false;
        publish();
        return std::nullopt;
    }
    owned_[choice.place] += got;
    Start begun{.place = choice.place};
    if (!restores || !restore(arrival, begun)) begun.reused = cut(arrival, choice);
    KeptPrefix& kept = kept_[choice.place];
    kept.key = arrival.key;
    const auto reused = arrival.prompt.first(begun.reused);
    kept.tokens.assign(reused.begin(), reused.end());
    kept.used = ++started_;
    reuse_.asked(arrival.key);
    publish();
    return begun;
}

/// Leaves in the place what the request can use, and gives how much that is.
std::uint32_t ContextPlaces::cut(const Arrival& arrival, const PlaceChoice& choice) {
    const llama_memory_t memory = llama_get_memory(&context_);
    const auto id = static_cast<llama_seq_id>(choice.place);
    // Some architectures cannot forget the end alone.
    if (choice.reused > 0 && arrival.reuse &&
        llama_memory_seq_rm(memory, id, static_cast<llama_pos>(choice.reused), -1))
        return choice.reused;
    llama_memory_seq_rm(memory, id, -1, -1);
    return 0;
}

/// Puts what was fetched into the place. False: the place is as before, or empty.
bool ContextPlaces::restore(const Arrival& arrival, Start& start) {
    const FetchedPrefix& fetched = *arrival.fetched;
    const auto id = static_cast<llama_seq_id>(start.place);
    const MonoTime began = system_clock().now();
    const std::size_t read = llama_state_seq_set_data(
        &context_, reinterpret_cast<const std::uint8_t*>(fetched.bytes.data()),
        fetched.bytes.size(), id);
    start.refused = read != fetched.bytes.size();
    const bool whole = fetched.usable == fetched.tokens;
    if (start.refused ||
        (!whole && !llama_memory_seq_rm(llama_get_memory(&context_), id,
                                        static_cast<llama_pos>(fetched.usable), -1)))
        return false;
    const std::chrono::duration<double, std::milli> spent = system_clock().now() - began;
    start.restore_ms = spent.count();
    start.reused = fetched.usable;
    return true;
}

void ContextPlaces::release(std::size_t place, bool known) {
    busy_[place] = false;
    if (!known) give(drop(place));
    publish();
}

std::uint32_t ContextPlaces::drop(std::size_t place) {
    llama_memory_seq_rm(llama_get_memory(&context_), static_cast<llama_seq_id>(place), -1, -1);
    kept_[place] = {};
    if (!memory_.usable()) return 0;
    memory_.release(static_cast<std::uint32_t>(place));
    return std::exchange(owned_[place], 0);
}

double ContextPlaces::worth(std::size_t place) const {
    const auto tokens = static_cast<double>(kept_[place].tokens.size());
    const auto bytes = static_cast<double>(owned_[place] * bytes_per_token_);
    return reuse_.likelihood(kept_[place].key) * tokens * token_ms_ / bytes;
}

/// The free place that goes first; as many as there are places: none has anything to give.
std::size_t ContextPlaces::least_worth() const {
    std::size_t least = kept_.size();
    if (!memory_.usable()) return least;
    for (std::size_t place = 0; place < kept_.size(); ++place) {
        if (busy_[place] || owned_[place] == 0) continue;
        if (least == kept_.size() || worth(place) < worth(least)) least = place;
    }
    return least;
}

void ContextPlaces::publish() {
    const std::size_t least = least_worth();
    budget_.set_prefix_worth(least == kept_.size() ? nothing_to_lose : worth(least));
    std::uint64_t all = 0;
    std::uint64_t idle = 0;
    for (std::size_t place = 0; place < owned_.size(); ++place) {
        all += owned_[place];
        idle += busy_[place] ? 0 : owned_[place];
    }
    bytes_.store(all * bytes_per_token_, std::memory_order_relaxed);
    idle_bytes_.store(idle * bytes_per_token_, std::memory_order_relaxed);
}

std::uint32_t ContextPlaces::get(std::uint32_t tokens) {
    if (!memory_.usable()) return 0;
    const std::uint64_t unit = block * bytes_per_token_;
    std::uint64_t units = 0;
    const std::uint64_t wanted = tokens / block;
    for (;;) {
        units += budget_.take_units(unit, wanted - units);
        if (units == wanted) break;
        const std::size_t place = least_worth();
        const double prefix = place == kept_.size() ? nothing_to_lose : worth(place);
        const double adapter = hot_->least_worth();
        if (prefix == nothing_to_lose && adapter == nothing_to_lose) break;
        const bool adapter_goes = adapter < prefix && hot_->yield_room((wanted - units) * unit);
        if (adapter_goes) continue;
        if (place == kept_.size()) break;
        give(drop(place));
    }
    publish();
    return static_cast<std::uint32_t>(units) * block;
}

bool ContextPlaces::may_lend_row(std::size_t place) const {
    const std::size_t held = kept_[place].tokens.size();
    if (held >= context_tokens_max_) return false;
    if (owned_[place] > held) return true;
    return memory_.usable() && budget_.wished() == 0 &&
           budget_.used() + block * bytes_per_token_ <= budget_.bytes_max();
}

bool ContextPlaces::lend_row(std::size_t place) {
    if (!may_lend_row(place)) return false;
    if (owned_[place] > kept_[place].tokens.size()) return true;
    if (budget_.take_units(block * bytes_per_token_, 1) == 0) return false;
    owned_[place] += block;
    publish();
    return true;
}

void ContextPlaces::rewind(std::size_t place, std::size_t tokens) {
    llama_memory_seq_rm(llama_get_memory(&context_), static_cast<llama_seq_id>(place),
                        static_cast<llama_pos>(tokens), -1);
    kept_[place].tokens.resize(std::min(tokens, kept_[place].tokens.size()));
}

void ContextPlaces::fulfil_wish() {
    bool dropped = false;
    while (budget_.wished() > 0 && budget_.used() + budget_.wished() > budget_.bytes_max()) {
        const std::size_t place = least_worth();
        if (place == kept_.size()) break;
        give(drop(place));
        dropped = true;
    }
    publish();
    if (dropped) hot_->room_was_made();
}

void ContextPlaces::took(double milliseconds, std::uint32_t tokens) {
    constexpr std::uint32_t enough = 16;  // fewer say more of the answers beside them
    constexpr double fresh = 0.2;
    if (tokens < enough) return;
    token_ms_ += fresh * (milliseconds / tokens - token_ms_);
}

}  // namespace molly::engine
