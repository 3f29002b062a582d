#include "net/connector.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include <boost/asio/io_context.hpp>

#include "base/coroutine.h"
#include "net/internal/exchange.h"
#include "net/internal/outbound.h"

namespace molly::net {
namespace {

namespace asio = boost::asio;
using internal::Call;
using internal::Link;
using internal::Pool;

/// TLS settings by authorities, read once.
class TlsShelf {
public:
    Result<std::shared_ptr<internal::TlsSettings>> get(const std::string& ca_file) {
        const std::scoped_lock lock(mutex_);
        if (const auto known = settings_.find(ca_file); known != settings_.end())
            return known->second;
        TRY(auto fresh, internal::make_tls_settings(ca_file));
        settings_.emplace(ca_file, fresh);
        return fresh;
    }

private:
    std::mutex mutex_;
    std::map<std::string, std::shared_ptr<internal::TlsSettings>> settings_;
};

class SocketConnector final : public Connector {
public:
    explicit SocketConnector(ConnectorOptions options) : options_(options) {}

    Task<Result<void>> exchange(const policy::Permit& permit, const domain::TargetSpec& target,
                                OutboundRequest request, ReplySink& sink, Wire& wire) override;

private:
    Task<Result<void>> attempts(Call& call, asio::io_context& io);
    Task<Result<Link>> open(Call& call, asio::io_context& io);

    ConnectorOptions options_;
    TlsShelf tls_;
};

Task<Result<void>> SocketConnector::exchange(const policy::Permit& permit,
                                             const domain::TargetSpec& target,
                                             OutboundRequest request, ReplySink& sink, Wire& wire) {
    CO_TRY_DO(permit.check(target));
    CO_TRY_DO(internal::check_transport(target));
    Call call(target, request, sink, wire, options_);
    CO_TRY(call.head, internal::request_head(target, request));
    if (call.cancelled()) co_return fail(call.interrupted());
    const Executor executor = co_await asio::this_coro::executor;
    const auto* native = executor.target<asio::io_context::executor_type>();
    if (native == nullptr)
        co_return fail(ErrorCode::internal, "an exchange outside of the IO threads");
    asio::io_context& io = native->context();
    const internal::CancelGuard guard(request.cancellation, io, call.reach);
    co_return co_await attempts(call, io);
}

Task<Result<void>> SocketConnector::attempts(Call& call, asio::io_context& io) {
    auto& pool = asio::use_service<Pool>(io);
    Link link;
    link.stream = pool.take(call.key);
    const bool reused = link.stream != nullptr;
    if (reused) {
        link.authenticated = call.target.endpoint.tls;
    } else {
        CO_TRY(link, co_await open(call, io));
    }
    Result<void> done = co_await internal::converse(call, link, reused);
    if (!done && call.replaceable) {
        link.stream->close();
        Result<Link> fresh = co_await open(call, io);
        if (!fresh) co_return fail(call.after_loss(std::move(fresh).error()));
        link = *std::move(fresh);
        done = co_await internal::converse(call, link, false);
    }
    call.reach->stream = nullptr;
    if (done && call.reusable) {
        pool.give(call.key, std::move(link.stream), options_.idle_max, options_.idle_expiry);
    } else {
        link.stream->close();
    }
    co_return done;
}

Task<Result<Link>> SocketConnector::open(Call& call, asio::io_context& io) {
    std::shared_ptr<internal::TlsSettings> settings;
    if (call.target.endpoint.tls) {
        CO_TRY(settings, tls_.get(call.target.endpoint.ca_file));
    }
    co_return co_await internal::connect(call, io, std::move(settings));
}

}  // namespace

std::unique_ptr<Connector> make_connector(const ConnectorOptions& options) {
    return std::make_unique<SocketConnector>(options);
}

}  // namespace molly::net
