// Nobody but the policy engine mints a permit.
// MODULE: policy
// EXPECT: is private within this context
#include "policy/permit.h"

using molly::policy::Permit;

Permit honest(const Permit& permit) {
    return permit.narrowed(permit);
}

#if MISUSE
Permit forged() {
    return Permit(molly::domain::TierSet{}, molly::domain::Residency{}, "mine");
}
#endif
