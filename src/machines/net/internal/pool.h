#pragma once
// Idle outbound connections of one IO thread. A service of its io_context, so it needs no lock and
// goes away with it.
#include <chrono>
#include <cstddef>
#include <memory>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "domain/target.h"
#include "net/internal/stream.h"

namespace molly::net::internal {

/// What a connection was opened for; another endpoint, tier or TLS setting never gets it.
struct PoolKey {
    domain::Endpoint endpoint;
    domain::Tier tier = domain::Tier::t3;
    bool operator==(const PoolKey&) const = default;
};

class Pool final : public boost::asio::execution_context::service {
public:
    static inline boost::asio::execution_context::id id;

    explicit Pool(boost::asio::execution_context& context)
        : boost::asio::execution_context::service(context) {}

    /// The connection that was used last, or null.
    std::shared_ptr<Stream> take(const PoolKey& wanted);
    /// Keeps it until it is taken, the peer closes, or `expiry` is over. Beyond `idle_max` per key
    /// it is closed at once.
    void give(const PoolKey& wanted, std::shared_ptr<Stream> stream, std::size_t idle_max,
              std::chrono::milliseconds expiry);

private:
    struct Shelf {
        PoolKey key;
        std::vector<std::shared_ptr<Stream>> idle;
    };
    void forget(const Stream* stream);
    void shutdown() override { shelves_.clear(); }

    std::vector<Shelf> shelves_;
};

}  // namespace molly::net::internal
