#include "world/network.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"

namespace molly::world {
namespace {

Behaviour ask(const std::function<Behaviour(const std::string&)>& behaviour,
              const std::string& target) {
    return behaviour ? behaviour(target) : Behaviour::answers;
}

constexpr std::string_view stream_end =
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: "
    "[DONE]\n\n";

/// `,"logprobs":{...}` of one token.
std::string logprobs_of(std::string_view words, std::optional<double> sureness) {
    if (!sureness) return {};
    std::string out = ",\"logprobs\":{\"content\":[{\"token\":";
    append_json_string(out, words);
    return out + fmt::format(",\"logprob\":{},\"top_logprobs\":[]}}]}}",
                             std::log(std::max(*sureness, 1e-9)));
}

std::string stream_words(std::string_view words, std::optional<double> sureness) {
    std::string out = "data: {\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":";
    append_json_string(out, words);
    return out + "}" + logprobs_of(words, sureness) + "}]}\n\n";
}

std::string whole_answer(std::string_view words, std::optional<double> sureness) {
    std::string out =
        "{\"model\":\"m\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\","
        "\"content\":";
    append_json_string(out, words);
    return out + "}" + logprobs_of(words, sureness) +
           ",\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":1}"
           "}";
}

constexpr std::string_view whole_embedding =
    "{\"model\":\"m\",\"data\":[{\"index\":0,\"embedding\":[0.6,0.8]}],\"usage\":{\"prompt_"
    "tokens\":"
    "9}}";

}  // namespace

/// The pieces of a good answer: a stream in two pieces cut inside a line, its words in two chunks,
/// or one whole body.
std::vector<std::string> Network::pieces_of(const std::string& target,
                                            const net::OutboundRequest& request) const {
    if (request.path.ends_with("/embeddings")) return {std::string(whole_embedding)};
    const std::string words = says ? says(target, request) : "hello";
    const bool tells = request.body.find("\"logprobs\":true") != std::string::npos;
    const auto sure = tells && sureness ? std::optional(sureness(target)) : std::nullopt;
    if (request.body.find("\"stream\":true") == std::string::npos)
        return {whole_answer(words, sure)};
    std::string rest(stream_end);
    const std::size_t half = std::max<std::size_t>(5, words.size() * 2 / 3);
    std::string first = stream_words(std::string_view(words).substr(0, half), sure);
    if (words.size() > half) first += stream_words(std::string_view(words).substr(half), sure);
    return {first + rest.substr(0, 9), rest.substr(9)};
}

Task<Result<void>> Network::pause(const net::OutboundRequest& request) {
    if (delay) co_await clock_.sleep(delay());
    if (request.cancellation && request.cancellation->cancelled())
        co_return fail(ErrorCode::cancelled, "the caller left");
    if (clock_.now() >= request.deadline)
        co_return fail(ErrorCode::deadline_exceeded, "the request's time is over");
    co_return Result<void>();
}

Task<Result<void>> Network::exchange(const policy::Permit& permit, const domain::TargetSpec& target,
                                     net::OutboundRequest request, net::ReplySink& sink,
                                     net::Wire& wire) {
    if (!ignores_permits) CO_TRY_DO(permit.check(target));
    const Behaviour how = ask(behaviour, target.id);
    CO_TRY_DO(co_await pause(request));
    if (how == Behaviour::unreachable)
        co_return fail(ErrorCode::unavailable, "nobody listens there");
    Seen record;
    record.target = target.id;
    record.tier = target.tier;
    record.departures_then = departures_count ? departures_count() : 0;
    record.bytes = request.path + "\n";
    for (const auto& [name, value] : request.headers)
        record.bytes += name + ": " + value + "\n";
    record.bytes += request.body;
    seen.push_back(std::move(record));
    wire.bytes_sent = request.body.size();
    wire.body_accepted = true;
    if (slowness) co_await clock_.sleep(slowness(target.id));
    co_return co_await reply(target.id, how, request, sink, wire);
}

Task<Result<void>> Network::reply(const std::string& target, Behaviour how,
                                  const net::OutboundRequest& request, net::ReplySink& sink,
                                  net::Wire& wire) {
    CO_TRY_DO(co_await pause(request));
    if (how == Behaviour::limits) co_return co_await status(429, "{}", sink, wire);
    if (how == Behaviour::fails) co_return co_await status(500, "{}", sink, wire);
    if (how == Behaviour::refuses) co_return co_await status(400, "{}", sink, wire);
    if (how == Behaviour::unauthenticated) {
        std::string quoting(net::header(request.headers, "authorization"));
        co_return co_await status(401, std::move(quoting), sink, wire);
    }
    if (how == Behaviour::dies_early)
        co_return fail(ErrorCode::upstream_failed, "the peer broke off");
    std::vector<std::string> pieces = pieces_of(target, request);
    if (how == Behaviour::garbles) pieces.front() = "data: {not json\n\n";
    const bool stream = pieces.size() > 1 || how == Behaviour::garbles;
    const net::Headers headers = {
        {"content-type", stream ? "text/event-stream" : "application/json"}};
    CO_TRY_DO(co_await sink.head(200, headers));
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        CO_TRY_DO(co_await pause(request));
        if (how == Behaviour::dies_midway && i + 1 == pieces.size())
            co_return fail(ErrorCode::upstream_failed, "the peer broke off");
        wire.bytes_received += pieces[i].size();
        CO_TRY_DO(co_await sink.piece(pieces[i]));
    }
    co_return Result<void>();
}

Task<Result<void>> Network::status(int code, std::string body, net::ReplySink& sink,
                                   net::Wire& wire) {
    const net::Headers headers = {{"content-type", "application/json"}, {"retry-after", "20"}};
    CO_TRY_DO(co_await sink.head(code, headers));
    wire.bytes_received += body.size();
    co_return co_await sink.piece(body);
}

Task<Result<void>> Engine::generate(const domain::Request& request, engine::DeltaSink& sink) {
    const Behaviour how = ask(behaviour, "engine");
    running_max = std::max(running_max, ++running_);
    if (delay) co_await clock_.sleep(delay());
    --running_;
    if (request.cancellation && request.cancellation->cancelled())
        co_return fail(ErrorCode::cancelled, "the caller left");
    if (how == Behaviour::limits) co_return fail(ErrorCode::exhausted, "the inbox is full");
    if (how == Behaviour::refuses)
        co_return fail(ErrorCode::invalid_request, "the grammar does not compile");
    if (how != Behaviour::answers && how != Behaviour::dies_midway)
        co_return fail(ErrorCode::unavailable, "the engine is not there");
    domain::Delta word;
    word.text = says ? says() : "hello";
    if (request.sampling.logprobs && sureness) {
        const double sure = std::max(sureness(), 1e-9);
        word.logprobs.push_back(
            {.token = word.text, .logprob = static_cast<float>(std::log(sure)), .top = {}});
    }
    CO_TRY_DO(co_await sink.write(word));
    if (how == Behaviour::dies_midway) co_return fail(ErrorCode::internal, "the engine stopped");
    domain::Delta end;
    end.finish = domain::FinishReason::stop;
    domain::Usage usage;
    usage.prompt_tokens = 9;
    usage.answer_tokens = 1;
    usage.source = domain::Usage::Source::engine;
    end.usage = usage;
    co_return co_await sink.write(end);
}

Task<Result<engine::Embeddings>> Engine::embed(const domain::Request& request) {
    if (ask(behaviour, "engine") != Behaviour::answers)
        co_return fail(ErrorCode::unavailable, "the engine is not there");
    if (delay) co_await clock_.sleep(delay());
    engine::Embeddings embeddings;
    embeddings.vectors.assign(request.inputs.size(), {0.6F, 0.8F});
    embeddings.usage.prompt_tokens = 9;
    embeddings.usage.source = domain::Usage::Source::engine;
    co_return embeddings;
}

}  // namespace molly::world
