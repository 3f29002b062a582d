#include "targets/target.h"

#include <utility>

#include <fmt/format.h>

#include "base/coroutine.h"

namespace molly::targets {

Target::Target(std::shared_ptr<const domain::TargetSpec> spec) : spec_(std::move(spec)) {}

Task<Result<domain::Response>> Target::run(policy::Dispatch dispatch, DeltaSink& sink,
                                           Report& report) {
    if (&dispatch.target() != spec_.get()) {
        co_return fail(ErrorCode::internal,
                       fmt::format("a dispatch for target {} was handed to target {}",
                                   dispatch.target().id, spec_->id));
    }
    co_return co_await answer(std::move(dispatch), sink, report);
}

}  // namespace molly::targets
