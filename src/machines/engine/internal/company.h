#pragma once
// What a request has to do with another engine, and what its own must be for that.
#include <memory>
#include <string>

#include "base/result.h"
#include "domain/request.h"
#include "engine/cooperation.h"
#include "engine/internal/checked_drafts.h"
#include "engine/internal/drafted_answer.h"
#include "engine/internal/model.h"
#include "engine/internal/runner.h"

namespace molly::engine {

/// The other side of a request on its way to the engine thread. What nobody took over ends.
struct Company {
    std::shared_ptr<CheckedDrafts> checked;  // drafts come from there
    std::shared_ptr<DraftedAnswer> drafted;  // drafts go there

    Company(std::shared_ptr<CheckedDrafts> its_checked, std::shared_ptr<DraftedAnswer> its_drafted)
        : checked(std::move(its_checked)), drafted(std::move(its_drafted)) {}
    Company(const Company&) = delete;
    Company& operator=(const Company&) = delete;
    ~Company();

    /// The job has it from here on.
    void join(Job& job, const std::vector<Token>& prompt);
    void failed(const Error& why);
};

/// Equal for two models where token ids mean the same: 128 bits over what each is spelled like, and
/// whether it ends an answer or controls it. No proof against forgery: drafts of a foreign
/// vocabulary are wrong, never harmful.
std::string vocabulary_hash(const Model& model);

/// Whether drafts with that vocabulary can be checked. Errors: conflict, unsupported.
Result<void> check_drafter(const Model& model, bool can_check, const std::string& vocabulary);

/// The request as it is drafted: the likeliest tokens of the same prompt.
domain::Request to_draft(domain::Request request);

/// A drafted answer and the reader whose going ends it.
std::unique_ptr<Drafting> make_drafting(std::shared_ptr<DraftedAnswer> answer,
                                        std::shared_ptr<Stream> stream,
                                        std::weak_ptr<Runner> runner);

}  // namespace molly::engine
