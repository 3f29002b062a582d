#pragma once
// Which addresses belong to this device or its local network. Pure.
#include <boost/asio/ip/address.hpp>

namespace molly::net::internal {

/// Loopback, RFC 1918, link-local (RFC 3927, RFC 4291) or unique local (RFC 4193).
bool local_network(const boost::asio::ip::address& address) noexcept;

}  // namespace molly::net::internal
