#include <utility>

#include "base/log.h"
#include "engine/internal/runner.h"

namespace molly::engine {

std::string Runner::key_of(const Sequence& sequence) {
    std::vector<ScaledHash> adapters;
    for (const JobAdapter& adapter : sequence.job->adapters)
        adapters.push_back({.hash = adapter.hold.hash(), .scale = adapter.use.scale});
    return prefix_key(adapters, sequence.job->member);
}

/// The prompt as far as something may be used again: what is to be saved is all that the place
/// holds when it is.
std::span<const Token> Runner::reusable(const Sequence& sequence) {
    const std::span<const Token> feed = sequence.feed;
    return sequence.keep > 0 ? feed.first(sequence.keep + 1) : feed;
}

std::vector<std::size_t> Runner::free_places() const {
    std::vector<std::size_t> free;
    for (std::size_t slot = 0; slot < slots_.size(); ++slot)
        if (!slots_[slot]) free.push_back(slot);
    return free;
}

/// Looks once for what lies on disk of its prompt. True: it is being read, and the sequence comes
/// back through `submit`.
bool Runner::fetch_prefix(Slot& sequence) {
    if (parts_.prefixes == nullptr || sequence->looked) return false;
    sequence->looked = true;
    const std::string key = key_of(*sequence);
    const std::span<const Token> feed = sequence->feed;
    const auto found = parts_.prefixes->find(key, feed);
    if (const std::uint32_t tokens = sequence->job->keep_tokens; tokens > 0) {
        const bool kept = found && found->usable >= tokens;
        const bool saving = !kept && parts_.prefixes->saving(key, feed.first(tokens));
        if (!kept && !saving) sequence->keep = tokens;
        sequence->job->prefix = kept ? prefix_word::kept : prefix_word::saving;
    }
    if (!found) return false;
    const std::uint32_t held = places_.held(free_places(), key, reusable(*sequence));
    if (!parts_.prefixes->pays(*found, held, places_.token_ms())) return false;
    const auto carried = std::make_shared<Slot>(std::move(sequence));
    const bool fetches =
        parts_.prefixes->fetch(*found, [this, carried](std::shared_ptr<const FetchedPrefix> it) {
            (*carried)->fetched = std::move(it);
            submit(std::move(*carried));
        });
    if (!fetches) sequence = std::move(*carried);
    return fetches;
}

/// What came of the bytes that were fetched for it; they go.
void Runner::settle_fetched(Sequence& sequence, const ContextPlaces::Start& start) {
    const auto fetched = std::exchange(sequence.fetched, nullptr);
    if (!fetched) return;
    if (start.refused) parts_.prefixes->refuse(fetched->id, "it does not fit the context");
    if (start.restore_ms > 0)
        parts_.prefixes->took(fetched->bytes.size(), fetched->load_ms + start.restore_ms);
}

/// Whoever waits with bytes in its hand lets them go, for those who run. Whether anybody did.
bool Runner::forget_fetched() {
    bool any = false;
    const std::scoped_lock lock(mutex_);
    for (const Slot& sequence : inbox_)
        any = std::exchange(sequence->fetched, nullptr) != nullptr || any;
    return any;
}

/// The place holds what is to be saved, and nothing else.
void Runner::save_prefix(std::size_t slot) {
    Sequence& sequence = *slots_[slot];
    if (sequence.keep == 0 || sequence.fed != sequence.keep) return;
    sequence.keep = 0;
    const auto id = static_cast<llama_seq_id>(slot);
    PrefixRecord record;
    record.key = key_of(sequence);
    record.tokens = places_.at(slot).tokens;
    record.member = sequence.job->member;
    record.sensitivity = sequence.job->sensitivity;
    record.bytes = llama_state_seq_get_size(context_.get(), id);
    for (const JobAdapter& adapter : sequence.job->adapters)
        record.adapters += (record.adapters.empty() ? "" : ", ") + adapter.use.id;
    sequence.job->prefix = parts_.prefixes->save(std::move(record), [&] {
        std::string bytes(llama_state_seq_get_size(context_.get(), id), '\0');
        bytes.resize(llama_state_seq_get_data(
            context_.get(), reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size(), id));
        return bytes;
    });
}

}  // namespace molly::engine
