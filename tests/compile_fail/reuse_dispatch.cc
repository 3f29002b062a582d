// A dispatch is one attempt: it cannot be copied and sent twice.
// MODULE: policy
// EXPECT: use of deleted function
#include "policy/permit.h"

using molly::policy::Dispatch;

void consume(Dispatch dispatch);

void once(Dispatch dispatch) {
    consume(std::move(dispatch));
}

#if MISUSE
void twice(const Dispatch& dispatch) {
    consume(dispatch);
}
#endif
