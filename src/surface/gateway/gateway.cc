#include "gateway/gateway.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "gateway/exchange.h"
#include "gateway/generate.h"
#include "gateway/guard.h"
#include "gateway/learning_face.h"
#include "gateway/listing.h"
#include "gateway/molly_face.h"
#include "gateway/verify_face.h"
#include "seal/seal.h"

namespace molly::gateway {
namespace {

class Gateway {
public:
    Gateway(Parts parts, Options options)
        : parts_(std::move(parts)),
          options_(std::move(options)),
          keep_alive_(std::make_shared<KeepAlive>(parts_.clock, options_.keep_alive)) {}

    Task<void> handle(net::HttpRequest& request, net::Responder& responder);

private:
    Result<members::Key> authenticate(const net::HttpRequest& request) const;
    /// A key by its id, while it is valid.
    Result<members::Key> named(const std::string& id) const;
    Task<void> route(Exchange& exchange, const Found& found);
    Task<void> route_own(Exchange& exchange, const Found& found);

    Parts parts_;
    Options options_;
    std::shared_ptr<KeepAlive> keep_alive_;
};

Error no_key() {
    return Error(ErrorCode::unauthenticated,
                 "no key: send `Authorization: Bearer KEY` or `x-api-key: KEY`; `molly keys "
                 "create` makes one")
        .reason("missing_key")
        .italian(
            "manca la chiave: inviare `Authorization: Bearer CHIAVE` o `x-api-key: CHIAVE`; "
            "`molly keys create` ne crea una");
}

Result<members::Key> Gateway::named(const std::string& id) const {
    const WallTime now = parts_.clock.wall();
    for (members::Key& key : parts_.members.list()) {
        if (key.id != id) continue;
        const bool expired = key.scope.expires && *key.scope.expires <= now;
        if (key.revoked || expired) break;
        return std::move(key);
    }
    return fail(no_key());
}

Result<members::Key> Gateway::authenticate(const net::HttpRequest& request) const {
    const std::string_view text = presented_key(request.headers);
    const bool here = is_here(request);
    if (text.empty()) {
        if (!here || options_.anonymous_key_id.empty()) return fail(no_key());
        return named(options_.anonymous_key_id);
    }
    const bool owner = here && !options_.local_token.empty() &&
                       seal::equal_in_constant_time(text, options_.local_token);
    return owner ? named(options_.local_key_id) : parts_.members.authenticate(text);
}

bool is_open(Route route) noexcept {
    return route == Route::greeting || route == Route::health || route == Route::ollama_version;
}

Error no_path(const Found& found, const net::HttpRequest& request) {
    if (found.route == Route::wrong_method) {
        return Error(ErrorCode::invalid_request, fmt::format("this path takes {}", found.allow))
            .reason("method_not_allowed")
            .italian(fmt::format("questo percorso accetta {}", found.allow));
    }
    const std::string path = request.path.substr(0, 100);
    return Error(ErrorCode::not_found,
                 fmt::format("nothing is at {}; docs/interfaces.md lists what there is", path))
        .reason("unknown_path")
        .italian(fmt::format("non c'è nulla in {}; docs/interfaces.md elenca ciò che c'è", path));
}

Task<void> send_no_path(Exchange& exchange, const Found& found) {
    const Error error = no_path(found, exchange.request);
    dialects::ErrorReply shaped =
        shape_error(exchange.shape, exchange.language, error, exchange.request_id);
    net::Headers more;
    if (found.route == Route::wrong_method) {
        shaped.status = 405;
        more.emplace_back("allow", found.allow);
    }
    co_await exchange.send(shaped.status, "application/json", shaped.body, std::move(more));
}

Task<void> send_preflight(Exchange& exchange) {
    net::Headers more;
    if (!exchange.extra.empty()) {
        more.emplace_back("access-control-allow-methods", "GET, POST, DELETE");
        more.emplace_back("access-control-allow-headers",
                          net::header(exchange.request.headers, "access-control-request-headers"));
        more.emplace_back("access-control-max-age", "600");
    }
    co_await exchange.send(204, "", "", std::move(more));
}

Task<void> greet(Exchange& exchange) {
    std::string text = exchange.request.method == "HEAD"
                           ? ""
                           : "Molly is running: models under a policy, a receipt for every answer "
                             "(/v1, /api, /molly/v1)\n";
    co_await exchange.send(200, "text/plain; charset=utf-8", std::move(text));
}

Task<void> Gateway::route_own(Exchange& exchange, const Found& found) {
    switch (found.route) {
        case Route::health:
            co_return co_await health(exchange);
        case Route::whoami:
            co_return co_await whoami(exchange);
        case Route::targets:
            co_return co_await list_targets(exchange);
        case Route::traces:
            co_return co_await list_traces(exchange);
        case Route::trace:
            co_return co_await show_trace(exchange, found.tail);
        case Route::receipt:
            co_return co_await show_receipt(exchange, found.tail);
        case Route::reload_rules:
            co_return co_await reload_rules(exchange);
        case Route::rotate_key:
            co_return co_await rotate_key(exchange);
        case Route::keys:
            co_return co_await list_keys(exchange);
        case Route::create_key:
            co_return co_await create_key(exchange);
        case Route::revoke_key:
            co_return co_await revoke_key(exchange, found.tail);
        case Route::explain:
            co_return co_await explain(exchange);
        case Route::declassify:
            co_return co_await declassify(exchange);
        case Route::feedback:
            co_return co_await give_feedback(exchange);
        case Route::priors:
            co_return co_await list_priors(exchange);
        case Route::add_priors:
            co_return co_await add_priors(exchange);
        case Route::verify:
            co_return co_await verify(exchange);
        case Route::metrics:
            co_return co_await show_metrics(exchange);
        default:
            co_return co_await send_no_path(exchange, found);
    }
}

Task<void> send_version(Exchange& exchange) {
    std::string body = "{\"version\":" + json_string(exchange.options.version) + "}";
    co_await exchange.send_json(std::move(body));
}

Task<void> Gateway::route(Exchange& exchange, const Found& found) {
    switch (found.route) {
        case Route::greeting:
            co_return co_await greet(exchange);
        case Route::generate:
            co_return co_await generate(exchange, found.face, keep_alive_);
        case Route::count_tokens:
            co_return co_await count_tokens(exchange);
        case Route::stored_response:
            co_return co_await show_response(exchange, found.tail);
        case Route::delete_response:
            co_return co_await delete_response(exchange, found.tail);
        case Route::models:
            co_return co_await list_models(exchange);
        case Route::model:
            co_return co_await show_model(exchange, found.tail);
        case Route::ollama_tags:
            co_return co_await list_ollama(exchange, false);
        case Route::ollama_running:
            co_return co_await list_ollama(exchange, true);
        case Route::ollama_show:
            co_return co_await show_ollama(exchange);
        case Route::ollama_version:
            co_return co_await send_version(exchange);
        default:
            co_return co_await route_own(exchange, found);
    }
}

Task<void> Gateway::handle(net::HttpRequest& request, net::Responder& responder) {
    Exchange exchange(parts_, options_, request, responder);
    const auto browser = check_browser(request.headers, options_.hosts, options_.origins);
    if (!browser) co_return co_await exchange.send_error(browser.error());
    if (request.method == "OPTIONS") co_return co_await send_preflight(exchange);
    const Found found = find_route(request.method, request.path);
    auto key = authenticate(request);
    if (key) {
        exchange.key = *std::move(key);
        exchange.authenticated = true;
    } else if (!is_open(found.route)) {
        co_return co_await exchange.send_error(key.error());
    }
    co_await route(exchange, found);
    if (log_enabled(LogLevel::debug)) {
        const auto spent = std::chrono::duration_cast<std::chrono::milliseconds>(
            parts_.clock.now() - request.received);
        log_event(LogLevel::debug, "exchange",
                  {{"method", request.method}, {"path", request.path}, {"ms", spent.count()}});
    }
}

}  // namespace

std::string refusal_body(std::string_view path, const Error& error) {
    return shape_error(shape_of(path), Language::english, error, "").body;
}

net::Handler make_handler(Parts parts, Options options) {
    const auto gateway = std::make_shared<Gateway>(std::move(parts), std::move(options));
    return [gateway](net::HttpRequest& request, net::Responder& responder) {
        return gateway->handle(request, responder);
    };
}

}  // namespace molly::gateway
