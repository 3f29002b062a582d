// The permit of a lenient request cannot be spent on another one.
// MODULE: policy
// EXPECT: is private within this context
#include "policy/permit.h"

using namespace molly;

const policy::Permit& honest(const policy::ClearedRequest& cleared) {
    return cleared.permit();
}

#if MISUSE
policy::ClearedRequest rewelded(domain::AnnotatedRequest request, const policy::Permit& permit) {
    return policy::ClearedRequest(std::move(request), permit);
}
#endif
