// What another engine has to do with the sequences of this one.
#include <algorithm>
#include <numeric>
#include <utility>

#include "engine/internal/runner.h"

namespace molly::engine {

/// Whether it computes nothing before its drafter says more, or wants more.
bool Runner::waits_for_drafter(const Sequence& sequence) const {
    const Job& job = *sequence.job;
    if (job.drafted) return !job.drafted->wanted();
    return sequence.left() == 0 && job.checked && job.checked->waits(system_clock().now());
}

/// Takes a draft back to what really came, where its drafter says so: from the first token that is
/// another one it is computed again.
void Runner::follow_drafter(std::size_t slot) {
    Sequence& sequence = *slots_[slot];
    if (!sequence.job->drafted) return;
    auto text = sequence.job->drafted->new_text();
    if (!text) return;
    const std::vector<Token>& held = places_.at(slot).tokens;
    const std::size_t most =
        std::min(held.size(), text->size() - 1);  // the last one says what next
    std::size_t same = 0;
    while (same < most && held[same] == (*text)[same])
        ++same;
    if (same < held.size()) places_.rewind(slot, same);
    sequence.answer_tokens = static_cast<std::uint32_t>(text->size()) - sequence.prompt_tokens;
    text->erase(text->begin(), text->begin() + static_cast<std::ptrdiff_t>(same));
    sequence.feed = *std::move(text);
    sequence.fed = 0;
}

/// Adds rows for the drafts that came from elsewhere; who has some takes no other.
void Runner::check_drafts(std::vector<Speculator::Answering>& answering, StepRows& step) {
    const double plain = speculator_.cost().of_all(passes_of(step.rows));
    std::erase_if(answering, [&](const Speculator::Answering& one) {
        const auto& checked = one.sequence->job->checked;
        if (!checked) return false;
        checked->step_takes(plain);
        std::vector<Token> tokens = checked->next(one.most);
        if (tokens.empty()) return false;
        const std::uint32_t rows = std::accumulate(step.rows.begin(), step.rows.end(), 0U);
        speculator_.check(one, std::move(tokens), parts_.limits.step_tokens_max - rows, step.rows);
        return true;
    });
}

}  // namespace molly::engine
