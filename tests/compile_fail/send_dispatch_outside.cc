// The client of a third party takes redacted payloads: no dispatch and no bare request.
// MODULE: targets
// EXPECT: could not convert|cannot convert|no matching function|invalid initialization
#include <utility>

#include "targets/external.h"

using namespace molly;

template <class Sent>
using Ask = decltype(std::declval<targets::ExternalClient&>().ask(
    std::declval<Sent>(), std::declval<targets::DeltaSink&>(), std::declval<targets::Report&>()));

using Honest = Ask<const policy::Redacted&>;

template <class Sent>
concept Taken = requires { typename Ask<Sent>; };
static_assert(!Taken<policy::Dispatch> && !Taken<domain::Request> &&
              !Taken<domain::AnnotatedRequest>);

#if MISUSE
using Leak = Ask<policy::Dispatch>;
#endif
