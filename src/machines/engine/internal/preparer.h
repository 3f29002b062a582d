#pragma once
// Turns a request into a Job: template, tokens, grammar, sampler. Slow for long prompts and large
// schemas, so it runs on its own thread.
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "domain/request.h"
#include "engine/engine.h"
#include "engine/internal/chat_format.h"
#include "engine/internal/constraint.h"
#include "engine/internal/job.h"
#include "engine/internal/model.h"

namespace molly::engine {

class Preparer {
public:
    /// Keeps references. `limits.context_tokens_max` is what the context really has.
    Preparer(const Model& model, const ChatFormat& format, const Limits& limits)
        : model_(model), format_(format), limits_(limits), vocabulary_(model) {}

    /// Errors: invalid_request (context_length_exceeded, a grammar or schema that does not compile,
    /// numbers out of range), unsupported, too_large.
    Result<std::unique_ptr<Job>> prepare(const domain::Request& request) const;

private:
    void wish_to_keep(const domain::Request& request, Job& job) const;
    std::uint32_t shared_beginning(const domain::Request& request,
                                   std::span<const Token> prompt) const;
    Result<Prompt> render(const domain::Request& request) const;
    Result<Prompt> render_completion(const domain::Request& request) const;
    Result<void> check_length(std::size_t tokens) const;
    Result<Grammar> parse(const std::string& gbnf, const char* param) const;
    Result<std::unique_ptr<Constraint>> constrain(const domain::Request& request,
                                                  const Prompt& prompt) const;

    const Model& model_;
    const ChatFormat& format_;
    const Limits& limits_;
    SortedVocabulary vocabulary_;
};

}  // namespace molly::engine
