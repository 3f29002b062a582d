#pragma once
// Drafts tokens of running answers, so that one forward pass checks several at once, where that was
// measured to pay. Belongs to the engine thread, except its counters.
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "engine/internal/acceptance.h"
#include "engine/internal/draft_model.h"
#include "engine/internal/sequence.h"
#include "engine/internal/step_cost.h"

namespace molly::engine {

class Speculator {
public:
    /// `draft_model` may be null.
    Speculator(const Limits& limits, const Model& model, std::shared_ptr<DraftModel> draft_model);

    /// A sequence that answers in the next step; it has no draft yet.
    struct Answering {
        Sequence* sequence = nullptr;
        std::size_t place = 0;
        std::span<const Token> text;  ///< computed so far
        std::uint32_t most = 0;       ///< tokens that it may check: memory, limits, its reader
    };
    /// Chooses drafts, and adds the rows that check them to the step's `rows` (shape: [places]), at
    /// most `room` in all.
    void draft(std::span<const Answering> answering, std::uint32_t room,
               std::vector<std::uint32_t>& rows);
    /// Checks a draft that came from elsewhere, as far as `room` goes.
    void check(const Answering& answering, std::vector<Token> tokens, std::uint32_t room,
               std::vector<std::uint32_t>& rows);
    /// The token behind the first `row` tokens of the sequence's draft came. True: it is the
    /// drafted one, whose row was computed too.
    bool came(Sequence& sequence, std::uint32_t row, Token token);
    /// What a step of these rows took (shape: [places]).
    void took(std::span<const std::uint32_t> rows, double milliseconds) {
        cost_.took(passes_of(rows), milliseconds);
    }
    /// Whether the model can take tokens back.
    bool can_rewind() const noexcept { return can_rewind_; }
    const StepCost& cost() const noexcept { return cost_; }
    /// Since the start; from any thread.
    SpeculationState state() const;

private:
    struct Plan {
        std::vector<DraftOffer> offers;
        std::vector<const Answering*> whose;  // shape: [offers]
    };
    void look_up(const Answering& answering);
    Plan offers(std::span<const Answering> answering);
    void ask_model(std::span<const Answering* const> whose, std::span<const std::uint32_t> lengths);

    const bool can_rewind_;
    const Speculation when_;
    const std::uint32_t most_;
    const Model& model_;
    const std::shared_ptr<DraftModel> draft_model_;
    StepCost cost_;
    AcceptRates rates_;
    double model_ms_ = 0;         // a drafted token of the draft model
    std::uint32_t declined_ = 0;  // steps in a row that could have drafted
    std::atomic<std::uint64_t> drafted_ = 0;
    std::atomic<std::uint64_t> accepted_ = 0;
    std::atomic<std::uint64_t> steps_ = 0;
};

}  // namespace molly::engine
