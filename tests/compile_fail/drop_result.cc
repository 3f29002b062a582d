// A result cannot be dropped on the floor.
// MODULE: base
// EXPECT: ignoring return(ed)? value|nodiscard
#include "base/result.h"

molly::Result<void> act();

bool honest() {
    return act().has_value();
}

#if MISUSE
void careless() {
    act();
}
#endif
