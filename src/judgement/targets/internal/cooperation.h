#pragma once
// Answers of another Molly that are drafted on this device: one request there, as always, and
// beside it calls that check drafted tokens. Whatever becomes of those, the answer is the other
// node's and comes as always.
#include <mutex>
#include <optional>
#include <string>

#include "dialects/drafts.h"
#include "targets/internal/draft_record.h"
#include "targets/internal/upstream.h"
#include "targets/target.h"

namespace molly::targets::internal {

class Cooperation {
public:
    /// Both outlive it.
    Cooperation(Upstream& upstream, Drafter drafter);

    /// As Target::run.
    Task<Result<domain::Response>> answer(const policy::Dispatch& dispatch, DeltaSink& sink,
                                          Report& report);

private:
    friend class DraftedExchange;

    bool suits(const policy::Dispatch& dispatch) const;
    Task<Result<domain::Response>> answer_alone(const policy::Dispatch& dispatch, DeltaSink& sink,
                                                Report& report);
    struct Said {
        int status = 0;
        std::string body;
    };
    /// One call at the other node, below its `/molly/v1`.
    Task<Result<Said>> call(const domain::Request& request, const policy::Permit& permit,
                            const dialects::DraftCall& what, CancellationPtr cancellation,
                            Report& report) const;
    Task<Result<std::optional<dialects::DraftSession>>> open(const policy::Dispatch& dispatch,
                                                             Report& report);
    bool always() const noexcept { return upstream_.spec().drafts == domain::Drafts::always; }
    BlockChoice next_block(std::uint32_t most) const;
    template <class Change>
    void record(Change change) {
        const std::scoped_lock lock(mutex_);
        change(record_);
    }

    Upstream& upstream_;
    const Drafter drafter_;
    domain::TargetSpec root_;  // the other node without its dialect's path
    mutable std::mutex mutex_;
    DraftRecord record_;
};

}  // namespace molly::targets::internal
