#include "gateway/guard.h"

#include <algorithm>
#include <cctype>

namespace molly::gateway {
namespace {

bool one_of(const std::vector<std::string>& list, std::string_view value) {
    return std::find(list.begin(), list.end(), value) != list.end();
}

std::string lower(std::string_view text) {
    std::string out(text);
    for (char& c : out)
        c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return out;
}

/// Host without its port; an IPv6 address keeps its brackets.
std::string_view name_of(std::string_view host) noexcept {
    if (host.starts_with('[')) return host.substr(0, host.find(']') + 1);
    return host.substr(0, host.find(':'));
}

/// A plain address cannot be rebound: only names can.
bool is_address(std::string_view name) noexcept {
    if (name.starts_with('[') && name.ends_with(']')) return true;
    return !name.empty() && name.find_first_not_of("0123456789.") == std::string_view::npos;
}

Error foreign(std::string_view what, std::string_view option) {
    const std::string option_text(option);
    return Error(ErrorCode::denied, "the request's " + std::string(what) +
                                        " header is foreign to this server; if you mean it, add it "
                                        "to gateway." +
                                        option_text + " in the configuration")
        .reason("foreign_" + lower(what))
        .italian(
            "l'intestazione " + std::string(what) +
            " della richiesta è estranea a questo server; se è voluta, aggiungerla a gateway." +
            option_text + " nella configurazione");
}

}  // namespace

Result<void> check_browser(const net::Headers& headers, const std::vector<std::string>& hosts,
                           const std::vector<std::string>& origins) {
    const std::string host = lower(net::header(headers, "host"));
    const std::string_view name = name_of(host);
    const bool known = name == "localhost" || name.ends_with(".localhost") || is_address(name) ||
                       one_of(hosts, name);
    if (!known) return fail(foreign("Host", "hosts"));
    const std::string origin = lower(net::header(headers, "origin"));
    if (origin.empty() || one_of(origins, origin)) return {};
    if (origin == "http://" + host || origin == "https://" + host) return {};
    return fail(foreign("Origin", "origins"));
}

net::Headers cors_headers(const net::Headers& headers, const std::vector<std::string>& origins) {
    const std::string origin = lower(net::header(headers, "origin"));
    net::Headers out;
    if (origin.empty() || !one_of(origins, origin)) return out;
    out.emplace_back("access-control-allow-origin", origin);
    out.emplace_back("vary", "origin");
    out.emplace_back("access-control-expose-headers",
                     "x-molly-tier, x-molly-target, x-molly-adapter, x-molly-receipt, "
                     "x-molly-alias, retry-after");
    return out;
}

std::string_view presented_key(const net::Headers& headers) noexcept {
    const std::string_view authorization = net::header(headers, "authorization");
    constexpr std::string_view bearer = "bearer ";
    if (authorization.size() > bearer.size()) {
        const bool is_bearer = std::equal(
            bearer.begin(), bearer.end(), authorization.begin(), [](char wanted, char given) {
                return wanted == std::tolower(static_cast<unsigned char>(given));
            });
        if (is_bearer) {
            std::string_view key = authorization.substr(bearer.size());
            while (key.starts_with(' '))
                key.remove_prefix(1);
            while (key.ends_with(' '))
                key.remove_suffix(1);
            return key;
        }
    }
    return net::header(headers, "x-api-key");
}

bool is_here(const net::HttpRequest& request) noexcept {
    for (const std::string_view name : {"forwarded", "x-forwarded-for", "x-real-ip", "via"}) {
        if (!net::header(request.headers, name).empty()) return false;
    }
    return is_loopback(request.peer);
}

bool is_loopback(std::string_view peer) noexcept {
    if (peer.starts_with("::ffff:")) peer.remove_prefix(7);
    return peer == "::1" || (peer.starts_with("127.") && is_address(peer));
}

}  // namespace molly::gateway
