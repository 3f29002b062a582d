#include "engine/internal/constraint.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

namespace molly::engine {

SortedVocabulary::SortedVocabulary(const Model& model)
    : model_(model), tokens_(model.tokens()), shared_(model.tokens(), 0) {
    std::iota(tokens_.begin(), tokens_.end(), 0);
    std::ranges::sort(tokens_, {},
                      [&](Token token) -> const std::string& { return model.piece(token); });
    for (const Token token : tokens_) {
        starts_.push_back(bytes_.size());
        bytes_ += model.piece(token);
    }
    starts_.push_back(bytes_.size());
    for (std::size_t place = 1; place < tokens_.size(); ++place) {
        const std::string_view before = piece(place - 1);
        const auto differs = std::ranges::mismatch(before, piece(place)).in1;
        shared_[place] = static_cast<std::size_t>(differs - before.begin());
    }
}

Result<std::unique_ptr<Constraint>> Constraint::make(std::shared_ptr<const Grammar> grammar,
                                                     const SortedVocabulary& vocabulary,
                                                     const std::string& opening,
                                                     std::vector<std::string> words) {
    std::unique_ptr<Constraint> constraint(
        new Constraint(std::move(grammar), vocabulary, std::move(words)));
    auto& matcher = constraint->matcher_;
    if (matcher.current() == GrammarMatcher::dead) {
        return fail(ErrorCode::invalid_request, "no text satisfies the grammar or schema");
    }
    if (constraint->waiting_ || opening.empty()) return constraint;
    TRY(const auto state, matcher.after(matcher.current(), opening));
    if (state == GrammarMatcher::dead) {
        return fail(ErrorCode::internal, "the template's grammar does not fit its own prompt");
    }
    matcher.move_to(state);
    return constraint;
}

Constraint::Constraint(std::shared_ptr<const Grammar> grammar, const SortedVocabulary& vocabulary,
                       std::vector<std::string> words)
    : vocabulary_(vocabulary),
      matcher_(std::move(grammar)),
      words_(std::move(words)),
      waiting_(!words_.empty()) {}

Result<bool> Constraint::allows(Token token) {
    if (waiting_) return true;
    matcher_.begin_work();
    const Model& model = vocabulary_.model();
    if (model.ends_answer(token)) return matcher_.may_end(matcher_.current());
    TRY(const auto state,
        matcher_.after_either(matcher_.current(), static_cast<std::uint32_t>(token),
                              model.piece(token)));
    return state != GrammarMatcher::dead;
}

Result<std::vector<bool>> Constraint::allowed() {
    matcher_.begin_work();
    const Model& model = vocabulary_.model();
    std::vector<bool> allowed(model.tokens(), false);
    const auto start = matcher_.current();
    std::vector<GrammarMatcher::State> path = {start};  // after 0, 1, 2, ... bytes of the token
    for (std::size_t place = 0; place < vocabulary_.tokens().size(); ++place) {
        path.resize(std::min(path.size(), vocabulary_.shared(place) + 1));
        const std::string_view piece = vocabulary_.piece(place);
        while (path.size() <= piece.size() && path.back() != GrammarMatcher::dead) {
            const auto byte = static_cast<std::uint8_t>(piece[path.size() - 1]);
            path.push_back(matcher_.step(path.back(), byte));
        }
        const bool whole = path.size() == piece.size() + 1 && path.back() != GrammarMatcher::dead;
        allowed[static_cast<std::size_t>(vocabulary_.tokens()[place])] = whole && !piece.empty();
    }
    TRY_DO(matcher_.check());
    for (std::size_t index = 0; index < allowed.size(); ++index) {
        const auto token = static_cast<Token>(index);
        if (model.ends_answer(token)) {
            allowed[index] = matcher_.may_end(start);
        } else if (matcher_.names_tokens(start)) {
            TRY(const auto by_id, matcher_.after_token(start, static_cast<std::uint32_t>(index)));
            if (by_id != GrammarMatcher::dead) allowed[index] = true;
        }
    }
    return allowed;
}

Result<void> Constraint::accept(Token token) {
    if (waiting_) return wait_for_word(token);
    matcher_.begin_work();
    const Model& model = vocabulary_.model();
    if (model.ends_answer(token)) return {};
    TRY(const auto state,
        matcher_.after_either(matcher_.current(), static_cast<std::uint32_t>(token),
                              model.piece(token)));
    if (state == GrammarMatcher::dead) {
        return fail(ErrorCode::internal, "a token outside the grammar was accepted");
    }
    matcher_.move_to(state);
    return {};
}

/// Starts the grammar at the first word, with whatever of the answer follows it.
Result<void> Constraint::wait_for_word(Token token) {
    seen_ += vocabulary_.model().piece(token);
    std::size_t first = std::string::npos;
    std::size_t longest = 0;
    for (const auto& word : words_) {
        first = std::min(first, seen_.find(word));
        longest = std::max(longest, word.size());
    }
    if (first == std::string::npos) {
        if (seen_.size() > longest) seen_.erase(0, seen_.size() - longest);
        return {};
    }
    waiting_ = false;
    matcher_.begin_work();
    TRY(const auto state,
        matcher_.after(matcher_.current(), std::string_view(seen_).substr(first)));
    if (state != GrammarMatcher::dead) {
        matcher_.move_to(state);
    } else {
        waiting_ = true;  // the model went its own way: what it says is content
        seen_.clear();
    }
    return {};
}

}  // namespace molly::engine
