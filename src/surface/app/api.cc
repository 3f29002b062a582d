#include "app/api.h"

#include <utility>

#include <fmt/format.h>

#include "app/house.h"
#include "base/coroutine.h"
#include "base/json.h"
#include "base/log.h"
#include "net/connector.h"
#include "net/server.h"
#include "policy/policy_engine.h"
#include "seal/seal.h"

namespace molly::app {
namespace {

/// Collects a reply from the socket.
class Collector final : public net::ReplySink {
public:
    Collector(ApiReply& reply, const PieceReader& reader) : reply_(reply), reader_(reader) {}
    Task<Result<void>> head(int status, const net::Headers& headers) override {
        reply_.status = status;
        reply_.headers = headers;
        co_return Result<void>();
    }
    Task<Result<void>> piece(std::string_view bytes) override {
        if (reader_ && reply_.status < 400) {
            reader_(bytes);
        } else {
            reply_.body += bytes;
        }
        co_return Result<void>();
    }

private:
    ApiReply& reply_;
    const PieceReader& reader_;
};

class RemoteApi final : public Api {
public:
    RemoteApi(domain::TargetSpec server, policy::Permit permit, net::Headers headers)
        : server_(std::move(server)),
          permit_(std::move(permit)),
          headers_(std::move(headers)),
          connector_(net::make_connector()),
          threads_(1) {}

    Result<ApiReply> call(const std::string& method, const std::string& path, std::string body,
                          PieceReader reader) override {
        ApiReply reply;
        Collector collector(reply, reader);
        Result<void> outcome;
        net::OutboundRequest request;
        request.method = method;
        request.path = path;
        request.headers = headers_;
        request.body = std::move(body);
        threads_.run([&]() -> Task<void> { return exchange(request, collector, outcome); });
        if (!outcome) return fail(std::move(outcome).error());
        return reply;
    }
    bool remote() const noexcept override { return true; }

private:
    Task<void> exchange(net::OutboundRequest& request, Collector& collector,
                        Result<void>& outcome) {
        net::Wire wire;
        outcome =
            co_await connector_->exchange(permit_, server_, std::move(request), collector, wire);
    }

    domain::TargetSpec server_;
    policy::Permit permit_;
    net::Headers headers_;
    std::unique_ptr<net::Connector> connector_;
    net::IoThreads threads_;
};

/// Stands where a connection would: the handler runs in this process.
class DirectResponder final : public net::Responder {
public:
    DirectResponder(ApiReply& reply, const PieceReader& reader)
        : reply_(reply), reader_(reader), cancellation_(std::make_shared<Cancellation>()) {}

    Task<Result<void>> reply(net::HttpReply reply) override {
        reply_.status = reply.status;
        reply_.headers = std::move(reply.headers);
        reply_.body = std::move(reply.body);
        co_return Result<void>();
    }
    Task<Result<void>> begin(int status, net::Headers headers) override {
        reply_.status = status;
        reply_.headers = std::move(headers);
        co_return Result<void>();
    }
    Task<Result<void>> write(std::string_view piece) override {
        if (reader_ && reply_.status < 400) {
            reader_(piece);
        } else {
            reply_.body += piece;
        }
        co_return Result<void>();
    }
    Task<Result<void>> finish() override { co_return Result<void>(); }
    const CancellationPtr& cancellation() const noexcept override { return cancellation_; }

private:
    ApiReply& reply_;
    const PieceReader& reader_;
    CancellationPtr cancellation_;
};

class EmbeddedApi final : public Api {
public:
    EmbeddedApi(std::unique_ptr<House> house, net::Headers headers)
        : house_(std::move(house)), headers_(std::move(headers)) {}

    Result<ApiReply> call(const std::string& method, const std::string& path, std::string body,
                          PieceReader reader) override {
        ApiReply reply;
        net::HttpRequest request;
        request.method = method;
        request.path = path.substr(0, path.find('?'));
        if (request.path.size() < path.size()) request.query = path.substr(request.path.size() + 1);
        request.headers = headers_;
        request.headers.emplace_back("host", "localhost");
        request.body = std::move(body);
        request.peer = "127.0.0.1";
        request.received = system_clock().now();
        DirectResponder responder(reply, reader);
        house_->threads().run(
            [&]() -> Task<void> { return house_->handler()(request, responder); });
        return reply;
    }
    bool remote() const noexcept override { return false; }

private:
    std::unique_ptr<House> house_;
    net::Headers headers_;
};

/// What every call of the command line carries.
net::Headers headers_for(const Terminal& terminal, const std::string& token) {
    net::Headers headers;
    headers.emplace_back("authorization", "Bearer " + token);
    headers.emplace_back("user-agent", "molly-cli");
    headers.emplace_back("content-type", "application/json");
    headers.emplace_back("accept-language", terminal.say("en", "it"));
    return headers;
}

Result<std::unique_ptr<Api>> reach(const RunningServer& running, const Terminal& terminal) {
    domain::TargetSpec spec;
    spec.id = "molly-serve";
    // T0 has no sockets; this one ends on the loopback of the same device.
    spec.tier = domain::Tier::t1;
    spec.controller = "this device";
    spec.endpoint.host = running.address;
    spec.endpoint.port = running.port;
    spec.idle_timeout = std::chrono::hours(1);
    policy::ArtifactLabel label;
    label.purpose = "command-line";
    TRY(policy::Permit permit, policy::PolicyEngine({}).clear_artifact(label));
    return std::unique_ptr<Api>(std::make_unique<RemoteApi>(std::move(spec), std::move(permit),
                                                            headers_for(terminal, running.token)));
}

Error held_by_nobody(const Places& places, const Error& silence) {
    return Error(ErrorCode::unavailable,
                 fmt::format("another process works on {} but no server answers there ({}); stop "
                             "it, or choose another folder with --data",
                             places.data.string(), silence.message()))
        .italian(fmt::format("un altro processo lavora su {} ma nessun server risponde ({}); "
                             "fermarlo, o scegliere un'altra cartella con --data",
                             places.data.string(), silence.message_italian()));
}

}  // namespace

Result<std::unique_ptr<Api>> open_api(const Places& places, const Terminal& terminal,
                                      ApiOptions options) {
    Error silence(ErrorCode::unavailable, "run/server.json names none");
    if (const auto running = find_running(places)) {
        TRY(auto api, reach(*running, terminal));
        const auto alive = api->call("GET", "/molly/v1/health");
        if (alive && alive->status == 200) return api;
        silence = alive ? error_of(*alive) : alive.error();
    }
    TRY(Config config, read_config(places));
    config.io_threads = 1;
    HouseNeeds needs;
    set_log_level(LogLevel::warning);  // here the answer is what counts
    needs.engine = options.engine;
    needs.model = options.model;
    needs.local_token = "local-" + seal::random_token(40);
    if (standard_error_is_terminal()) {
        needs.tell = [terminal](std::string_view english, std::string_view italian) {
            terminal.note(terminal.say(english, italian));
        };
    }
    const std::string token = needs.local_token;
    auto house = House::open(std::move(config), places, std::move(needs));
    if (!house && house.error().code() == ErrorCode::conflict)
        return fail(held_by_nobody(places, silence));
    if (!house) return fail(std::move(house).error());
    return std::unique_ptr<Api>(
        std::make_unique<EmbeddedApi>(*std::move(house), headers_for(terminal, token)));
}

Error error_of(const ApiReply& reply) {
    ErrorCode code = ErrorCode::internal;
    if (reply.status == 401) code = ErrorCode::unauthenticated;
    if (reply.status == 403) code = ErrorCode::denied;
    if (reply.status == 404) code = ErrorCode::not_found;
    if (reply.status == 400 || reply.status == 413 || reply.status == 422)
        code = ErrorCode::invalid_request;
    if (reply.status == 409) code = ErrorCode::conflict;
    if (reply.status == 429) code = ErrorCode::rate_limited;
    if (reply.status == 502 || reply.status == 503 || reply.status == 504)
        code = ErrorCode::unavailable;
    std::string message = fmt::format("the server answered with status {}", reply.status);
    std::string reason;
    const auto parsed = parse_json(reply.body);
    const json::value* error =
        parsed && parsed->is_object() ? parsed->get_object().if_contains("error") : nullptr;
    if (error != nullptr && error->is_object()) {
        const json::value* text = error->get_object().if_contains("message");
        if (text != nullptr && text->is_string()) message = std::string(text->get_string());
        const json::value* token = error->get_object().if_contains("reason");
        if (token == nullptr) token = error->get_object().if_contains("code");
        if (token != nullptr && token->is_string()) reason = std::string(token->get_string());
    }
    return Error(code, std::move(message)).reason(std::move(reason));
}

Result<std::string> body_of(Result<ApiReply> reply) {
    if (!reply) return fail(std::move(reply).error());
    if (reply->status >= 400) return fail(error_of(*reply));
    return std::move(reply->body);
}

}  // namespace molly::app
