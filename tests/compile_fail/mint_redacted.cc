// What a third party gets is made by the redactor alone.
// MODULE: policy
// EXPECT: is private within this context
#include <utility>

#include "policy/redactor.h"

using namespace molly;

Result<policy::Redacted> honest(policy::Dispatch dispatch, policy::PlaceholderMap& map) {
    return policy::Redactor::redact(std::move(dispatch), map);
}

#if MISUSE
policy::Redacted forged(std::shared_ptr<const domain::TargetSpec> target, domain::Request request,
                        const policy::Permit& permit,
                        std::shared_ptr<const policy::Placeholders> placeholders) {
    return policy::Redacted(std::move(target), "", std::move(request), permit,
                            std::move(placeholders), {});
}
#endif
