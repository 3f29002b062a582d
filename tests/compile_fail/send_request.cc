// A target takes a dispatch, never a bare request.
// MODULE: targets
// EXPECT: could not convert|cannot convert|no matching function
#include <utility>

#include "targets/target.h"

using namespace molly;

template <class Sent>
using Run = decltype(std::declval<targets::Target&>().run(
    std::declval<Sent>(), std::declval<targets::DeltaSink&>(), std::declval<targets::Report&>()));

using Honest = Run<policy::Dispatch>;

#if MISUSE
using Leak = Run<domain::Request>;
#endif
