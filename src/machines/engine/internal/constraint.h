#pragma once
// Keeps one answer inside a grammar. One thread at a time.
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/internal/grammar_matcher.h"
#include "engine/internal/model.h"

namespace molly::engine {

/// The vocabulary in the order of its bytes, so that tokens with a common beginning are walked
/// once.
class SortedVocabulary {
public:
    explicit SortedVocabulary(const Model& model);

    const std::vector<Token>& tokens() const noexcept { return tokens_; }  ///< in byte order
    /// The bytes of the token at this place; one after the other in memory.
    std::string_view piece(std::size_t place) const {
        return std::string_view(bytes_).substr(starts_[place], starts_[place + 1] - starts_[place]);
    }
    /// Bytes that the token at this place shares with the one before it.
    std::size_t shared(std::size_t place) const { return shared_[place]; }
    const Model& model() const noexcept { return model_; }

private:
    const Model& model_;
    std::vector<Token> tokens_;
    std::vector<std::size_t> shared_;
    std::string bytes_;
    std::vector<std::size_t> starts_;  // one more than tokens
};

class Constraint {
public:
    /// The grammar begins at once (no `words`), after it has read `opening`; or at the first place
    /// where the answer contains one of `words`. Errors: internal (the opening does not fit).
    static Result<std::unique_ptr<Constraint>> make(std::shared_ptr<const Grammar> grammar,
                                                    const SortedVocabulary& vocabulary,
                                                    const std::string& opening,
                                                    std::vector<std::string> words);

    /// Errors: exhausted, when the grammar is too ambiguous to follow; the same for all three.
    Result<bool> allows(Token token);
    /// shape: [vocabulary]
    Result<std::vector<bool>> allowed();
    Result<void> accept(Token token);

private:
    Constraint(std::shared_ptr<const Grammar> grammar, const SortedVocabulary& vocabulary,
               std::vector<std::string> words);
    Result<void> wait_for_word(Token token);

    const SortedVocabulary& vocabulary_;
    GrammarMatcher matcher_;
    std::vector<std::string> words_;
    std::string seen_;  // the end of the answer, while waiting for a word
    bool waiting_ = false;
};

}  // namespace molly::engine
