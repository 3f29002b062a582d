#include "targets/target.h"

#include <utility>

#include <fmt/format.h>

#include "base/coroutine.h"

namespace molly::targets {

Target::Target(std::shared_ptr<const domain::TargetSpec> spec) : spec_(std::move(spec)) {}

namespace {

Error misdirected(const domain::TargetSpec& sent_to, const domain::TargetSpec& target) {
    return {ErrorCode::internal,
            fmt::format("a dispatch for target {} was handed to target {}, which may not have it",
                        sent_to.id, target.id)};
}

}  // namespace

Result<std::string> Target::adapter(std::string_view asked) const {
    return fail(
        Error(ErrorCode::not_found, fmt::format("target {} has no adapters, so none called {}",
                                                spec_->id, asked.substr(0, 100)))
            .reason("adapter_not_found")
            .param("model")
            .italian(fmt::format("la destinazione {} non ha adattatori, quindi nessuno "
                                 "chiamato {}",
                                 spec_->id, asked.substr(0, 100))));
}

Result<domain::Label> Target::adapter_label(std::string_view asked) const {
    return fail(Target::adapter(asked).error());
}

std::vector<std::string> Target::adapters(std::size_t /*most*/) const {
    return {};
}

Task<Result<domain::Response>> Target::run(policy::Dispatch dispatch, DeltaSink& sink,
                                           Report& report) {
    const bool here = &dispatch.target() == spec_.get();
    if (!here || spec_->tier == domain::Tier::t3)
        co_return fail(misdirected(dispatch.target(), *spec_));
    co_return co_await answer(std::move(dispatch), sink, report);
}

Task<Result<domain::Response>> Target::run(policy::Redacted payload, DeltaSink& sink,
                                           Report& report) {
    if (&payload.target() != spec_.get()) co_return fail(misdirected(payload.target(), *spec_));
    co_return co_await answer_redacted(std::move(payload), sink, report);
}

Task<Result<domain::Response>> Target::answer(policy::Dispatch dispatch, DeltaSink& /*sink*/,
                                              Report& /*report*/) {
    co_return fail(misdirected(dispatch.target(), *spec_));
}

Task<Result<domain::Response>> Target::answer_redacted(policy::Redacted payload,
                                                       DeltaSink& /*sink*/, Report& /*report*/) {
    co_return fail(misdirected(payload.target(), *spec_));
}

}  // namespace molly::targets
