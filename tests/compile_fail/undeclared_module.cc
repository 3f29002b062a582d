// A module that was not named in USES cannot be included.
// MODULE: domain
// EXPECT: policy/permit.h: No such file
#include "domain/content.h"

#if MISUSE
#include "policy/permit.h"
#endif
