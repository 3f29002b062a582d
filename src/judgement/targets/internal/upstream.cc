#include "targets/internal/upstream.h"

#include <utility>

#include "base/coroutine.h"
#include "dialects/dialects.h"

namespace molly::targets::internal {
namespace {

using domain::Dialect;

constexpr std::size_t error_bytes_max = 64U << 10U;  // of an upstream's error body that are read

/// Whether a reply of this status leaves open that the upstream did the work: a gateway in between
/// gave up, or the reply broke. Every other error status is the upstream's own refusal.
bool may_have_been_served(int status) noexcept {
    return status < 300 || status == 502 || status == 504;
}

/// Turns an upstream's reply into Deltas.
class ReplyReader final : public net::ReplySink {
public:
    ReplyReader(const domain::TargetSpec& spec, const domain::Request& request, DeltaSink& sink)
        : spec_(spec), request_(request), sink_(sink) {}

    Task<Result<void>> head(int status, const net::Headers& headers) override {
        status_ = status;
        if (status < 200 || status > 299) {
            retry_after_ = net::header(headers, "retry-after");
            co_return Result<void>();
        }
        // Some servers ignore `stream` and answer whole.
        const std::string_view type = net::header(headers, "content-type");
        const bool whole = type.starts_with("application/json");
        const bool stream = request_.stream && !whole;
        decoder_ = dialects::make_reply_decoder(spec_.dialect, request_.operation, stream);
        co_return Result<void>();
    }

    Task<Result<void>> piece(std::string_view bytes) override {
        if (!decoder_) {
            error_body_.append(bytes.substr(0, error_bytes_max - error_body_.size()));
            co_return Result<void>();
        }
        CO_TRY(const std::vector<domain::Delta> deltas, decoder_->piece(bytes));
        co_return co_await pass_on(deltas);
    }

    /// After the exchange: the rest of the Deltas, or the error that the status means.
    Task<Result<void>> finish() {
        if (!decoder_) {
            co_return fail(
                dialects::decode_upstream_error(spec_.dialect, status_, error_body_, retry_after_));
        }
        CO_TRY(const std::vector<domain::Delta> deltas, decoder_->end());
        co_return co_await pass_on(deltas);
    }

    int status() const noexcept { return status_; }
    const domain::Usage& usage() const noexcept { return usage_; }
    dialects::ReplyDecoder& decoder() noexcept { return *decoder_; }

private:
    Task<Result<void>> pass_on(const std::vector<domain::Delta>& deltas) {
        for (const domain::Delta& delta : deltas) {
            if (delta.usage) usage_ = *delta.usage;
            CO_TRY_DO(co_await sink_.write(delta));
        }
        co_return Result<void>();
    }

    const domain::TargetSpec& spec_;
    const domain::Request& request_;
    DeltaSink& sink_;
    int status_ = 0;
    std::string retry_after_;
    std::string error_body_;
    std::unique_ptr<dialects::ReplyDecoder> decoder_;
    domain::Usage usage_;
};

/// Takes the status of a probe and drops the body.
class StatusReader final : public net::ReplySink {
public:
    Task<Result<void>> head(int status, const net::Headers& /*headers*/) override {
        status_ = status;
        co_return Result<void>();
    }
    Task<Result<void>> piece(std::string_view /*bytes*/) override { co_return Result<void>(); }
    int status() const noexcept { return status_; }

private:
    int status_ = 0;
};

/// Counts for the length of a scope.
class InFlight {
public:
    explicit InFlight(std::atomic<std::uint32_t>& count) : count_(count) { ++count_; }
    InFlight(const InFlight&) = delete;
    InFlight& operator=(const InFlight&) = delete;
    InFlight(InFlight&&) = delete;
    InFlight& operator=(InFlight&&) = delete;
    ~InFlight() { --count_; }

private:
    std::atomic<std::uint32_t>& count_;
};

}  // namespace

Task<Result<void>> Upstream::probe(const policy::Permit& permit) {
    net::OutboundRequest outbound;
    outbound.method = "GET";
    outbound.path = spec_->dialect == Dialect::ollama ? "/api/tags" : "/models";
    add_key(outbound.headers);
    StatusReader reader;
    net::Wire wire;
    CO_TRY_DO(co_await connector_.exchange(permit, *spec_, std::move(outbound), reader, wire));
    // A server without a list of models is there all the same.
    if (reader.status() < 400 || reader.status() == 404) co_return Result<void>();
    co_return fail(dialects::decode_upstream_error(spec_->dialect, reader.status(), "", ""));
}

Task<Result<domain::Response>> Upstream::ask(const domain::Request& request,
                                             const policy::Permit& permit, DeltaSink& sink,
                                             Report& report, net::Headers more) {
    const InFlight counted(running_);
    CO_TRY(net::OutboundRequest outbound, encode(request));
    outbound.headers.insert(outbound.headers.end(), more.begin(), more.end());
    ReplyReader reader(*spec_, request, sink);
    net::Wire wire;
    Result<void> exchanged =
        co_await connector_.exchange(permit, *spec_, std::move(outbound), reader, wire);
    report.bytes_sent = wire.bytes_sent;
    report.bytes_received = wire.bytes_received;
    report.peer_authenticated = wire.peer_authenticated;
    report.body_accepted = wire.body_accepted && may_have_been_served(reader.status());
    if (!exchanged) co_return fail(std::move(exchanged).error());
    CO_TRY_DO(co_await reader.finish());
    domain::Response response;
    response.target = spec_->id;
    response.model = reader.decoder().model();
    if (response.model.empty()) response.model = spec_->model;
    response.embeddings = reader.decoder().take_embeddings();
    response.usage = reader.usage();
    co_return response;
}

Result<net::OutboundRequest> Upstream::encode(const domain::Request& request) const {
    // Whoever asked for them is not sent here: the router wants them where they are to be had.
    if (request.sampling.logprobs && !spec_->capabilities.logprobs) {
        domain::Request without = request;
        without.sampling.logprobs = false;
        without.sampling.top_logprobs = 0;
        return encode(without);
    }
    TRY(dialects::UpstreamRequest upstream,
        dialects::encode_upstream(spec_->dialect, request, spec_->model));
    net::OutboundRequest outbound;
    outbound.path = std::move(upstream.path);
    outbound.headers = std::move(upstream.headers);
    outbound.body = std::move(upstream.body);
    outbound.deadline = request.deadline;
    outbound.cancellation = request.cancellation;
    add_key(outbound.headers);
    return outbound;
}

void Upstream::add_key(net::Headers& headers) const {
    if (key_.empty()) return;
    if (spec_->dialect == Dialect::anthropic) {
        headers.emplace_back("x-api-key", key_);
    } else {
        headers.emplace_back("authorization", "Bearer " + key_);
    }
}

}  // namespace molly::targets::internal
