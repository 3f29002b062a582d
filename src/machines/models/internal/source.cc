#include "models/internal/source.h"

#include <boost/url.hpp>
#include <fmt/format.h>

namespace molly::models::internal {
namespace {

namespace urls = boost::urls;

constexpr std::string_view hub_prefix = "hf:";
constexpr std::chrono::milliseconds connect_timeout{10'000};

std::unexpected<Error> bad_source() {
    return fail(Error(ErrorCode::invalid_request,
                      "a source is an https URL of a GGUF file, or hf:owner/repo/file.gguf")
                    .italian("una sorgente è un URL https di un file GGUF, oppure "
                             "hf:proprietario/repo/file.gguf")
                    .param("source"));
}

std::unexpected<Error> insecure(std::string_view host) {
    return fail(
        Error(ErrorCode::denied,
              fmt::format("{} was named without https; models come over https only, except from "
                          "this device's loopback",
                          host))
            .reason("tls_required")
            .italian(fmt::format("{} è indicato senza https; i modelli arrivano solo via https, "
                                 "salvo dal loopback di questo dispositivo",
                                 host)));
}

bool is_loopback(std::string_view host) {
    return host == "localhost" || host == "127.0.0.1" || host == "::1";
}

/// `hf:owner/repo/path` as the hub's address of the file.
Result<std::string> hub_url(std::string_view source, const std::string& hub) {
    const std::size_t owner = source.find('/');
    const std::size_t repo = owner == std::string_view::npos ? owner : source.find('/', owner + 1);
    if (repo == std::string_view::npos || owner == 0 || repo == owner + 1 ||
        repo + 1 == source.size())
        return bad_source();
    const auto encode = [](std::string_view text) {
        return urls::encode(text, urls::pchars + '/');
    };
    return fmt::format("{}/{}/resolve/main/{}", hub, encode(source.substr(0, repo)),
                       encode(source.substr(repo + 1)));
}

Result<Place> split(const urls::url_view& url, const PullOptions& options) {
    const bool tls = url.scheme_id() == urls::scheme::https;
    if ((!tls && url.scheme_id() != urls::scheme::http) || url.has_userinfo() || url.host().empty())
        return bad_source();
    Place place;
    place.target.id = "pull " + std::string(url.encoded_host_and_port());
    place.target.endpoint.tls = tls;
    place.target.endpoint.host = std::string(url.host_address());
    place.target.endpoint.port = tls ? 443 : 80;
    if (url.has_port()) place.target.endpoint.port = url.port_number();
    place.target.endpoint.ca_file = options.ca_file;
    place.target.connect_timeout = connect_timeout;
    place.loopback = is_loopback(place.target.endpoint.host);
    // This device's own loopback is the local network; everybody else is somebody else.
    place.target.tier = place.loopback ? domain::Tier::t1 : domain::Tier::t3;
    if (!tls && !place.loopback) return insecure(place.target.endpoint.host);
    place.path = std::string(url.encoded_target());
    if (!place.path.starts_with('/')) place.path.insert(place.path.begin(), '/');
    place.url = std::string(url.buffer());
    return place;
}

}  // namespace

Result<Place> place_of(const PullOptions& options) {
    std::string address = options.source;
    if (address.starts_with(hub_prefix)) {
        TRY(address, hub_url(address.substr(hub_prefix.size()), options.hub));
    }
    const auto parsed = urls::parse_uri(address);
    if (!parsed) return bad_source();
    return split(*parsed, options);
}

Result<Place> redirected(const Place& from, const std::string& location,
                         const PullOptions& options) {
    const auto base = urls::parse_uri(from.url);
    const auto reference = urls::parse_uri_reference(location);
    urls::url target;
    const bool resolved = base && reference && urls::resolve(*base, *reference, target);
    auto place = resolved ? split(target, options) : Result<Place>(bad_source());
    if (!place && place.error().code() == ErrorCode::invalid_request) {
        return fail(Error(ErrorCode::upstream_failed,
                          fmt::format("{} redirects to what is no address of a file",
                                      from.target.endpoint.host))
                        .italian(fmt::format("{} rimanda a un indirizzo che non è di un file",
                                             from.target.endpoint.host)));
    }
    if (place && place->loopback && !from.loopback) {
        return fail(Error(ErrorCode::denied,
                          fmt::format("{} redirects to this device; a stranger may not choose what "
                                      "is asked here",
                                      from.target.endpoint.host))
                        .reason("redirect_to_loopback")
                        .italian(fmt::format("{} rimanda a questo dispositivo; un estraneo non può "
                                             "scegliere che cosa vi si chiede",
                                             from.target.endpoint.host)));
    }
    return place;
}

}  // namespace molly::models::internal
