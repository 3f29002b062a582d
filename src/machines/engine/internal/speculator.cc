#include "engine/internal/speculator.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/clock.h"
#include "engine/internal/copy_draft.h"

namespace molly::engine {
namespace {

// A gain below is noise.
constexpr double gain_least = 1.05;
// What was measured long ago is measured again after so many steps without drafts.
constexpr std::uint32_t try_again_steps = 256;
constexpr double fresh_of_all = 0.02;
constexpr double fresh_of_one = 0.15;

std::vector<std::uint32_t> all_of(std::span<const DraftOffer> offers, std::uint32_t room) {
    std::vector<std::uint32_t> lengths;
    for (const DraftOffer& offer : offers) {
        lengths.push_back(std::min(offer.most, room));
        room -= lengths.back();
    }
    return lengths;
}

}  // namespace

std::optional<Speculation> speculation_from(std::string_view word) noexcept {
    if (word == "off") return Speculation::off;
    if (word == "measured") return Speculation::measured;
    if (word == "always") return Speculation::always;
    return std::nullopt;
}

Speculator::Speculator(const Limits& limits, const Model& model,
                       std::shared_ptr<DraftModel> draft_model)
    : can_rewind_(!llama_model_is_recurrent(model.handle()) &&
                  !llama_model_is_hybrid(model.handle())),
      when_(limits.draft_tokens_max > 0 && can_rewind_ ? limits.speculation : Speculation::off),
      most_(limits.draft_tokens_max),
      model_(model),
      draft_model_(std::move(draft_model)),
      rates_(fresh_of_all) {}

/// Also where the draft is not checked: what comes tells whether it would have been right.
void Speculator::look_up(const Answering& answering) {
    Sequence& sequence = *answering.sequence;
    if (!sequence.rates) sequence.rates.emplace(rates_, fresh_of_one);
    CopyDraft copy = draft_by_copy(answering.text, sequence.next, most_);
    const auto ends =
        std::ranges::find_if(copy.tokens, [&](Token token) { return model_.ends_answer(token); });
    copy.tokens.erase(ends, copy.tokens.end());
    sequence.draft = {.tokens = std::move(copy.tokens), .kind = copy_kind(copy.matched), .rows = 0};
}

Speculator::Plan Speculator::offers(std::span<const Answering> answering) {
    Plan plan;
    for (const Answering& one : answering) {
        look_up(one);
        Sequence& sequence = *one.sequence;
        const bool by_model = sequence.draft.tokens.empty() && draft_model_ != nullptr;
        const auto length =
            by_model ? most_ : static_cast<std::uint32_t>(sequence.draft.tokens.size());
        const std::uint32_t most = std::min(length, one.most);
        if (most == 0) continue;
        if (by_model) sequence.draft.kind = DraftKind::model;
        plan.offers.push_back({.place = one.place,
                               .most = most,
                               .rate = sequence.rates->of(sequence.draft.kind),
                               .by_model = by_model});
        plan.whose.push_back(&one);
    }
    return plan;
}

void Speculator::ask_model(std::span<const Answering* const> whose,
                           std::span<const std::uint32_t> lengths) {
    std::vector<DraftModel::Wish> wishes;
    std::uint32_t longest = 0;
    for (std::size_t i = 0; i < whose.size(); ++i) {
        if (lengths[i] == 0 || whose[i]->sequence->draft.kind != DraftKind::model) continue;
        wishes.push_back({.place = whose[i]->place,
                          .text = whose[i]->text,
                          .next = whose[i]->sequence->next,
                          .most = lengths[i]});
        longest = std::max(longest, lengths[i]);
    }
    if (wishes.empty()) return;
    const MonoTime started = system_clock().now();
    const std::size_t read = draft_model_->draft(wishes);
    const std::chrono::duration<double, std::milli> spent = system_clock().now() - started;
    // A text that is new to the draft model is read once; that says nothing of the next step.
    if (read <= wishes.size() * (most_ + 1)) {
        const double each = spent.count() / longest;
        model_ms_ += (model_ms_ == 0 ? 1 : 0.2) * (each - model_ms_);
    }
    for (DraftModel::Wish& wish : wishes) {
        const auto* one = *std::ranges::find_if(
            whose, [&](const Answering* other) { return other->place == wish.place; });
        one->sequence->draft.tokens = std::move(wish.draft);
    }
}

void Speculator::draft(std::span<const Answering> answering, std::uint32_t room,
                       std::vector<std::uint32_t>& rows) {
    if (when_ == Speculation::off) return;
    const Plan plan = offers(answering);
    if (plan.offers.empty()) return;
    DraftChoice choice = choose_drafts(rows, static_cast<std::uint32_t>(answering.size()),
                                       plan.offers, room, cost_, model_ms_);
    if (when_ == Speculation::always) {
        choice.lengths = all_of(plan.offers, room);
    } else if (choice.gain < gain_least && ++declined_ < try_again_steps) {
        return;
    }
    declined_ = 0;
    ask_model(plan.whose, choice.lengths);
    std::uint32_t added = 0;
    for (std::size_t i = 0; i < plan.whose.size(); ++i) {
        Draft& draft = plan.whose[i]->sequence->draft;
        draft.rows = std::min(choice.lengths[i], static_cast<std::uint32_t>(draft.tokens.size()));
        rows[plan.whose[i]->place] += draft.rows;
        added += draft.rows;
    }
    drafted_.fetch_add(added, std::memory_order_relaxed);
    if (added > 0) steps_.fetch_add(1, std::memory_order_relaxed);
}

void Speculator::check(const Answering& answering, std::vector<Token> tokens, std::uint32_t room,
                       std::vector<std::uint32_t>& rows) {
    Sequence& sequence = *answering.sequence;
    if (!sequence.rates) sequence.rates.emplace(rates_, fresh_of_one);
    tokens.resize(std::min<std::size_t>({tokens.size(), answering.most, room}));
    const auto length = static_cast<std::uint32_t>(tokens.size());
    sequence.draft = {.tokens = std::move(tokens), .kind = DraftKind::elsewhere, .rows = length};
    rows[answering.place] += length;
    drafted_.fetch_add(length, std::memory_order_relaxed);
    if (length > 0) steps_.fetch_add(1, std::memory_order_relaxed);
}

bool Speculator::came(Sequence& sequence, std::uint32_t row, Token token) {
    const Draft& draft = sequence.draft;
    if (row >= draft.tokens.size()) return false;
    // Behind the rows that were computed nothing is known but the first.
    if (row >= draft.rows && row > 0) return false;
    const bool same = draft.tokens[row] == token;
    sequence.rates->saw(draft.kind, same);
    rates_.saw(draft.kind, same);
    if (!same || row >= draft.rows) return false;
    accepted_.fetch_add(1, std::memory_order_relaxed);
    return true;
}

SpeculationState Speculator::state() const {
    return {.on = when_ != Speculation::off,
            .draft_model = draft_model_ ? draft_model_->description().name : std::string(),
            .drafted = drafted_.load(std::memory_order_relaxed),
            .accepted = accepted_.load(std::memory_order_relaxed),
            .steps = steps_.load(std::memory_order_relaxed)};
}

}  // namespace molly::engine
