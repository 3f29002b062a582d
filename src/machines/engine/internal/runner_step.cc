#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

#include "base/log.h"
#include "engine/internal/runner.h"

namespace molly::engine {
namespace {

using domain::FinishReason;

bool empty(const domain::Delta& delta) {
    return delta.text.empty() && delta.reasoning.empty() && delta.tool_calls.empty() &&
           delta.logprobs.empty() && !delta.finish;
}

}  // namespace

bool Runner::step() {
    std::vector<std::size_t> slots;
    std::vector<SequenceView> views;
    std::vector<AdapterMix> mixes(slots_.size());
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
        if (!slots_[slot]) continue;
        follow_drafter(slot);
        const Sequence& sequence = *slots_[slot];
        slots.push_back(slot);
        views.push_back({.prompt_left = sequence.readable(),
                         .paused = sequence.job->stream->full() || waits_for_drafter(sequence),
                         .held = static_cast<std::uint32_t>(places_.at(slot).tokens.size()),
                         .owned = places_.owned(slot)});
        for (const JobAdapter& adapter : sequence.job->adapters)
            mixes[slot].push_back({.adapter = adapter.hold.get(),
                                   .scale = adapter.use.scale,
                                   .hash = adapter.hold.hash()});
    }
    parts_.adapters.choose(slots, mixes, views);
    std::vector<std::uint32_t> tokens = plan(slots, views).tokens;
    const bool stuck =
        std::ranges::all_of(tokens, [](std::uint32_t rows) { return rows == 0; }) &&
        std::ranges::any_of(views, [](const SequenceView& view) { return !view.paused; });
    if (stuck) {
        const bool all_there =
            std::ranges::all_of(slots, [&](std::size_t slot) { return slots_[slot] != nullptr; });
        with_memory_of_waiting([&] {
            if (all_there) tokens = plan(slots, views).tokens;
        });
    }
    StepRows step{.rows = std::vector<std::uint32_t>(slots_.size(), 0),
                  .lent = std::vector<bool>(slots_.size(), false)};
    for (std::size_t i = 0; i < slots.size(); ++i) {
        if (slots_[slots[i]]) {
            step.rows[slots[i]] = tokens[i];
        } else {
            mixes[slots[i]].clear();  // parked
        }
    }
    if (std::ranges::all_of(step.rows, [](std::uint32_t rows) { return rows == 0; })) {
        const std::scoped_lock lock(mutex_);
        return !between_.empty();
    }
    fill_holes(step);
    speculate(step);
    fill_batch(step);
    compute(step, std::move(mixes));
    return true;
}

/// Lets places between the running ones compute a row for nobody, where that saves a pass.
void Runner::fill_holes(StepRows& step) {
    const std::uint32_t rows = std::accumulate(step.rows.begin(), step.rows.end(), 0U);
    if (!speculator_.can_rewind()) return;
    const auto places = holes_to_fill(step.rows, speculator_.cost(), [&](std::size_t place) {
        return places_.may_lend_row(place);
    });
    if (rows + places.size() > parts_.limits.step_tokens_max) return;
    for (const std::size_t place : places) {
        if (!places_.lend_row(place)) continue;
        step.rows[place] = 1;
        step.lent[place] = true;
    }
}

/// Adds rows that check drafted tokens, out of what the step and each sequence have left.
void Runner::speculate(StepRows& step) {
    std::vector<Speculator::Answering> answering;
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
        if (step.rows[slot] == 0 || step.lent[slot]) continue;
        Sequence& sequence = *slots_[slot];
        sequence.draft = {};  // that of the step before means nothing now
        if (sequence.left() > 0) continue;
        const std::vector<Token>& text = places_.at(slot).tokens;
        const auto held = static_cast<std::uint32_t>(text.size()) + 1;  // with its next token
        const auto less = [](std::uint32_t a, std::uint32_t b) { return a - std::min(a, b); };
        const std::uint32_t most =
            std::min({less(places_.owned(slot), held), less(sequence.job->stream->room(), 1),
                      less(sequence.job->answer_tokens_max, sequence.answer_tokens + 1)});
        answering.push_back({.sequence = &sequence, .place = slot, .text = text, .most = most});
    }
    check_drafts(answering, step);
    const std::uint32_t rows = std::accumulate(step.rows.begin(), step.rows.end(), 0U);
    speculator_.draft(answering, parts_.limits.step_tokens_max - rows, step.rows);
}

void Runner::fill_batch(const StepRows& step) {
    batch_.clear();
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
        const auto id = static_cast<llama_seq_id>(slot);
        std::vector<Token>& computed = places_.at(slot).tokens;
        if (step.lent[slot]) {
            batch_.add(0, static_cast<llama_pos>(computed.size()), id, false);
            continue;
        }
        if (slots_[slot]) slots_[slot]->output = -1;
        for (std::uint32_t n = 0; n < step.rows[slot]; ++n) {
            Sequence& sequence = *slots_[slot];
            const bool reading = sequence.left() > 0;
            const bool drafted = !reading && sequence.output >= 0;
            const Token token = reading   ? sequence.feed[sequence.fed++]
                                : drafted ? sequence.draft.tokens[n - 1]
                                          : sequence.next;
            const bool output = sequence.left() == 0;
            const std::int32_t at =
                batch_.add(token, static_cast<llama_pos>(computed.size()), id, output);
            computed.push_back(token);
            if (output && !drafted) sequence.output = at;
        }
    }
}

void Runner::compute(const StepRows& step, std::vector<AdapterMix> mixes) {
    const MonoTime started = system_clock().now();
    const int failed = parts_.adapters.decode(*context_, batch_.view(), std::move(mixes));
    const std::chrono::duration<double, std::milli> spent = system_clock().now() - started;
    places_.took(spent.count(), static_cast<std::uint32_t>(batch_.size()));
    speculator_.took(step.rows, spent.count());
    if (failed != 0) log_event(LogLevel::error, "engine_step_failed", {{"code", failed}});
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
        if (step.lent[slot]) places_.rewind(slot, places_.at(slot).tokens.size());
        if (step.rows[slot] == 0 || step.lent[slot]) continue;
        share_.served(slots_[slot]->job->member, step.rows[slot]);
        if (failed != 0) {
            fail_sequence(slot, Error(ErrorCode::internal, "the forward pass failed"), false);
            continue;
        }
        save_prefix(slot);
        if (slots_[slot]->output >= 0) advance(slot);
    }
}

/// Chooses the sequence's next token from the logits of this step, and more where the drafted ones
/// are what it would have said.
void Runner::advance(std::size_t slot) {
    Sequence& sequence = *slots_[slot];
    const std::size_t computed = places_.at(slot).tokens.size();
    const std::uint32_t drafted = sequence.draft.rows;
    for (std::uint32_t row = 0; row <= drafted; ++row) {
        const std::int32_t at = sequence.output + static_cast<std::int32_t>(row);
        auto choice = sequence.job->sampler->choose(llama_get_logits_ith(context_.get(), at));
        if (!choice) {
            fail_sequence(slot, std::move(choice).error());
            return;
        }
        const bool goes_on = speculator_.came(sequence, row, choice->token);
        if (!goes_on && row < drafted) places_.rewind(slot, computed - (drafted - row));
        take_token(slot, *choice);
        // At its end, the place keeps what was computed behind it too: true to the tokens it names.
        if (!goes_on || !slots_[slot]) return;
    }
}

void Runner::take_token(std::size_t slot, const Sampler::Choice& choice) {
    Sequence& sequence = *slots_[slot];
    Job& job = *sequence.job;
    ++sequence.answer_tokens;
    sequence.next = choice.token;
    const bool ends = parts_.model.ends_answer(choice.token);
    if (job.drafted) return job.drafted->drew(choice.token, ends);
    const bool silent =
        parts_.model.is_control(choice.token) && !job.visible.contains(choice.token);
    std::string text;
    if (!ends && !silent) text = job.text.push(parts_.model.piece(choice.token));
    const bool over = sequence.answer_tokens >= job.answer_tokens_max;
    const bool last = ends || job.text.stopped() || over;
    if (job.checked) job.checked->took(choice.token, last);
    if (last) text += job.text.finish();
    domain::Delta delta = read_text(sequence, std::move(text), last);
    if (choice.logprob && !ends) delta.logprobs.push_back(*choice.logprob);
    if (!delta.reasoning.empty()) ++sequence.reasoning_tokens;
    if (last) {
        const bool cut = over && !ends && !job.text.stopped();
        delta.stop_sequence = job.text.stopped_by();
        finish(slot, std::move(delta), cut ? FinishReason::length : FinishReason::stop);
    } else if (!empty(delta)) {
        job.stream->send({.delta = std::move(delta), .error = std::nullopt, .last = false});
    }
}

domain::Delta Runner::read_text(Sequence& sequence, std::string text, bool last) const {
    if (!sequence.job->reader) {
        domain::Delta delta;
        delta.text = std::move(text);
        return delta;
    }
    sequence.read += text;
    if (text.empty() && !last) return {};
    domain::Delta delta = sequence.job->reader->read(sequence.read, last);
    if (!delta.tool_calls.empty()) sequence.called_tools = true;
    return delta;
}

void Runner::finish(std::size_t slot, domain::Delta delta, FinishReason reason) {
    const Sequence& sequence = *slots_[slot];
    const bool called = sequence.called_tools && reason == FinishReason::stop;
    delta.finish = called ? FinishReason::tool_calls : reason;
    delta.usage = usage_of(sequence);
    delta.prefix = sequence.job->prefix;
    sequence.job->stream->send({.delta = std::move(delta), .error = std::nullopt, .last = true});
    release(slot);
}

domain::Usage Runner::usage_of(const Sequence& sequence) const {
    domain::Usage usage;
    usage.prompt_tokens = sequence.prompt_tokens;
    usage.cached_tokens = sequence.cached;
    usage.answer_tokens = sequence.answer_tokens;
    usage.reasoning_tokens = sequence.reasoning_tokens;
    usage.source = domain::Usage::Source::engine;
    return usage;
}

}  // namespace molly::engine
