#pragma once
// Chooses the next token of one sequence from its logits. One thread at a time.
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "domain/request.h"
#include "domain/response.h"
#include "engine/internal/constraint.h"
#include "engine/internal/model.h"

namespace molly::engine {

struct SamplerDeleter {
    void operator()(llama_sampler* sampler) const noexcept { llama_sampler_free(sampler); }
};

class Sampler {
public:
    /// `constraint` may be null. Errors: invalid_request (a number out of range).
    static Result<std::unique_ptr<Sampler>> make(const Model& model, const domain::Sampling& wanted,
                                                 std::unique_ptr<Constraint> constraint);

    struct Choice {
        Token token = 0;
        std::optional<domain::TokenLogprob> logprob;
    };

    /// Takes the next token and remembers it. Logits have shape [vocabulary]. Errors: exhausted
    /// (the grammar is too ambiguous to follow), invalid_request (no token fits the grammar).
    Result<Choice> choose(const float* logits);

    /// The largest number of alternatives that a log-probability may list.
    static constexpr std::uint32_t top_logprobs_max = 20;

private:
    Sampler(const Model& model, const domain::Sampling& wanted,
            std::unique_ptr<Constraint> constraint);
    void add_stages(const domain::Sampling& wanted);
    Token draw(const float* logits, const std::vector<bool>* allowed);
    domain::TokenLogprob logprob_of(const float* logits, Token token) const;

    const Model& model_;
    std::unique_ptr<llama_sampler, SamplerDeleter> chain_;
    std::unique_ptr<Constraint> constraint_;
    bool greedy_ = false;  // the likeliest token, whatever came before
    std::vector<llama_token_data> candidates_;
    std::optional<std::uint32_t> top_logprobs_;  // unset: none wanted
};

}  // namespace molly::engine
