#include "net/internal/address.h"

namespace molly::net::internal {
namespace {

using boost::asio::ip::address;
using boost::asio::ip::address_v4;
using boost::asio::ip::address_v6;

bool local_v4(address_v4 v4) noexcept {
    const auto bits = v4.to_uint();
    return v4.is_loopback() || bits >> 24U == 10 || bits >> 20U == (172U << 4U | 1U) ||
           bits >> 16U == (192U << 8U | 168U) || bits >> 16U == (169U << 8U | 254U);
}

}  // namespace

bool local_network(const address& where) noexcept {
    if (where.is_v4()) return local_v4(where.to_v4());
    const address_v6 v6 = where.to_v6();
    const auto bytes = v6.to_bytes();
    if (v6.is_v4_mapped())
        return local_v4(
            address_v4(address_v4::bytes_type{bytes[12], bytes[13], bytes[14], bytes[15]}));
    return v6.is_loopback() || v6.is_link_local() || (bytes[0] & 0xfeU) == 0xfc;
}

}  // namespace molly::net::internal
