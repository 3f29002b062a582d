#include "net/internal/outbound.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include <boost/asio/error.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <fmt/format.h>

#include "base/coroutine.h"
#include "net/internal/address.h"

namespace molly::net::internal {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using domain::Tier;
using std::chrono::steady_clock;

// One read takes at most this; it is also what a connection may hold of a reply.
constexpr std::size_t buffer_bytes = 65536;

bool breaks_line(std::string_view text, bool spaces_too) noexcept {
    return std::any_of(text.begin(), text.end(), [spaces_too](char letter) {
        return letter == '\r' || letter == '\n' || letter == 0 || (spaces_too && letter == ' ');
    });
}

std::string_view bare_host(const std::string& host) noexcept {
    std::string_view name = host;
    if (name.size() > 2 && name.front() == '[' && name.back() == ']')
        name = name.substr(1, name.size() - 2);
    return name;
}

std::string host_header(const domain::Endpoint& endpoint) {
    const auto name = bare_host(endpoint.host);
    const bool six = name.find(':') != std::string_view::npos;
    const bool usual = endpoint.port == (endpoint.tls ? 443 : 80);
    const auto written = six ? fmt::format("[{}]", name) : std::string(name);
    return usual ? written : fmt::format("{}:{}", written, endpoint.port);
}

Error denied(const domain::TargetSpec& target, std::string_view reason, std::string_view what,
             std::string_view italian) {
    return Error(ErrorCode::denied, fmt::format("target {}: {}", target.id, what))
        .reason(std::string(reason))
        .italian(fmt::format("destinazione {}: {}", target.id, italian));
}

/// What the resolver's callback and the waiting coroutine share.
struct Found {
    ErrorOfSystem error;
    std::vector<tcp::endpoint> endpoints;
    bool done = false;
};

Task<Result<std::vector<tcp::endpoint>>> resolve(Call& call, asio::io_context& io, MonoTime end) {
    const auto& endpoint = call.target.endpoint;
    const std::string host(bare_host(endpoint.host));
    ErrorOfSystem not_an_address;
    const auto literal = asio::ip::make_address(host, not_an_address);
    if (!not_an_address)
        co_return std::vector<tcp::endpoint>(1, tcp::endpoint(literal, endpoint.port));
    auto found = std::make_shared<Found>();
    auto resolver = std::make_shared<tcp::resolver>(io);
    auto place = std::make_shared<Stream>(io, 1);  // only to wait at
    call.reach->stream = place;
    resolver->async_resolve(
        host, std::to_string(endpoint.port), tcp::resolver::numeric_service,
        [found, resolver, place](const ErrorOfSystem& error, const auto& results) {
            found->error = error;
            for (const auto& result : results)
                found->endpoints.push_back(result.endpoint());
            found->done = true;
            place->wake_later();
        });
    place->deadline(end);
    while (!found->done && !place->timed_out() && !place->closed())
        co_await place->wait();
    if (call.cancelled()) co_return fail(call.interrupted());
    if (!found->done || found->error || found->endpoints.empty()) {
        if (call.late()) co_return fail(call.interrupted());
        co_return fail(call.failed("name_not_resolved",
                                   "its name could not be resolved; check the name and the network",
                                   "il suo nome non è risolvibile; controllare nome e rete"));
    }
    co_return std::move(found->endpoints);
}

/// T1 is this local network: an address elsewhere is not what was enrolled, whatever DNS says.
Result<void> keep_permitted(const domain::TargetSpec& target, std::vector<tcp::endpoint>& found) {
    if (target.tier != Tier::t1) return {};
    const std::string first = found.front().address().to_string();
    std::erase_if(found, [](const tcp::endpoint& each) { return !local_network(each.address()); });
    if (!found.empty()) return {};
    return fail(denied(
        target, "address_class",
        fmt::format("{} is outside of the local network, so it is no T1; declare it as T2 or T3",
                    first),
        fmt::format("{} è fuori dalla rete locale, quindi non è T1; dichiararla T2 o T3", first)));
}

Task<Result<Link>> connect_one(Call& call, asio::io_context& io, const tcp::endpoint& peer,
                               std::shared_ptr<TlsSettings> settings, MonoTime end) {
    Link link;
    std::shared_ptr<SecureStream> secure;
    if (settings) {
        secure = make_secure_stream(io, buffer_bytes, std::move(settings));
        link.stream = secure;
    } else {
        link.stream = std::make_shared<Stream>(io, buffer_bytes);
    }
    call.reach->stream = link.stream;
    const ErrorOfSystem error = co_await link.stream->connect(peer, end);
    if (call.cancelled()) co_return fail(call.interrupted());
    if (error) {
        if (call.late()) co_return fail(call.interrupted());
        const bool slow = error == asio::error::timed_out;
        co_return fail(
            call.failed(slow ? "connect_timeout" : "connect_failed",
                        fmt::format("no connection ({}); is it running there?", error.message()),
                        fmt::format("nessuna connessione ({}); è in funzione?", error.message())));
    }
    if (secure) {
        const Result<void> proven = co_await secure->handshake(call.target.endpoint, end);
        if (call.cancelled()) co_return fail(call.interrupted());
        if (!proven && proven.error().code() == ErrorCode::deadline_exceeded && !call.late())
            co_return fail(call.failed("connect_timeout", "no TLS handshake in time",
                                       "nessun handshake TLS in tempo"));
        if (!proven) co_return fail(proven.error());
        link.authenticated = true;
    }
    co_return link;
}

}  // namespace

Result<void> check_transport(const domain::TargetSpec& target) {
    if (target.local || target.tier == Tier::t0) {
        return fail(denied(target, "no_socket_for_t0",
                           "what is placed on this device never gets a socket",
                           "ciò che resta su questo dispositivo non riceve mai un socket"));
    }
    if (target.endpoint.host.empty() || target.endpoint.port == 0)
        return fail(ErrorCode::invalid_request,
                    fmt::format("target {}: its endpoint needs a host and a port", target.id));
    if (target.tier == Tier::t1 || target.endpoint.tls) return {};
    return fail(denied(
        target, "tls_required",
        fmt::format("{} targets need https; a tunnel on this device's loopback is no exception, "
                    "because nothing proves who is at its other end",
                    to_string(target.tier)),
        fmt::format("le destinazioni {} richiedono https; un tunnel sul loopback non fa "
                    "eccezione, perché nulla prova chi sta all'altro capo",
                    to_string(target.tier))));
}

Result<std::string> request_head(const domain::TargetSpec& target, const OutboundRequest& request) {
    const auto& endpoint = target.endpoint;
    bool broken = request.method.empty() || breaks_line(request.method, true) ||
                  breaks_line(request.path, true) || breaks_line(endpoint.path, true) ||
                  breaks_line(endpoint.host, true);
    std::string head;
    head.reserve(512);
    head += request.method;
    head += ' ';
    head += endpoint.path;
    head += request.path;
    if (endpoint.path.empty() && request.path.empty()) head += '/';
    head += " HTTP/1.1\r\nhost: ";
    head += host_header(endpoint);
    head += "\r\n";
    for (const auto& [name, value] : request.headers) {
        broken = broken || name.empty() || breaks_line(name, true) || breaks_line(value, false);
        head += name;
        head += ": ";
        head += value;
        head += "\r\n";
    }
    if (!request.body.empty() || (request.method != "GET" && request.method != "HEAD")) {
        head += "content-length: ";
        head += fmt::format_int(request.body.size()).c_str();
        head += "\r\n";
    }
    head += "\r\n";
    if (broken)
        return fail(ErrorCode::invalid_request,
                    fmt::format("target {}: method, path and headers must be single lines; check "
                                "its path and key",
                                target.id));
    return head;
}

Task<Result<Link>> connect(Call& call, asio::io_context& io,
                           std::shared_ptr<TlsSettings> settings) {
    const MonoTime end =
        std::min(call.request.deadline, steady_clock::now() + call.target.connect_timeout);
    CO_TRY(auto found, co_await resolve(call, io, end));
    CO_TRY_DO(keep_permitted(call.target, found));
    for (std::size_t i = 0;; ++i) {
        const auto now = steady_clock::now();
        // The last address has all the time that is left; those before it a fair share.
        const auto share = (end - now) / static_cast<std::int64_t>(found.size() - i);
        Result<Link> link =
            co_await connect_one(call, io, found[i], settings, std::min(end, now + share));
        const bool last = i + 1 == found.size();
        if (link || last || link.error().code() != ErrorCode::unavailable) co_return link;
    }
}

}  // namespace molly::net::internal
