// Nothing leaves without a permit: the only way out asks for one.
// MODULE: net
// EXPECT: no matching function|could not convert|invalid initialization|cannot convert
#include <utility>

#include "net/connector.h"

using namespace molly;

template <class Permit>
using Exchange = decltype(std::declval<net::Connector&>().exchange(
    std::declval<Permit>(), std::declval<const domain::TargetSpec&>(), net::OutboundRequest{},
    std::declval<net::ReplySink&>(), std::declval<net::Wire&>()));

using Honest = Exchange<const policy::Permit&>;

#if MISUSE
using Leak = Exchange<const domain::TierSet&>;
#endif
