// A dispatch is made by Dispatch::to alone, which asks the permit.
// MODULE: policy
// EXPECT: is private within this context
#include "policy/permit.h"

using namespace molly;
using Target = std::shared_ptr<const domain::TargetSpec>;
using Cleared = std::shared_ptr<const policy::ClearedRequest>;

Result<policy::Dispatch> honest(Target target, Cleared cleared) {
    return policy::Dispatch::to(std::move(target), "", std::move(cleared));
}

#if MISUSE
policy::Dispatch forged(Target target, Cleared cleared) {
    return policy::Dispatch(std::move(target), "", std::move(cleared));
}
#endif
