#include "gateway/generate.h"

#include <algorithm>
#include <utility>

#include "annotate/annotate.h"
#include "base/log.h"
#include "dialects/drafts.h"
#include "gateway/record_json.h"
#include "seal/seal.h"

namespace molly::gateway {
namespace {

using dialects::Decoded;
using dialects::Envelope;
using dialects::Face;

/// Whatever one answer needs on its way out.
struct Answer {
    Face face;
    Envelope envelope;
    Decoded decoded;  // its request has moved on to the pipeline
    std::string id;
    std::string asked;
    std::string member;
    domain::Request echo;  // for faces that repeat what was asked
    Conversation conversation;
};

/// A header value that the caller's text may become: printable ASCII only.
std::string header_text(std::string_view text) {
    std::string out;
    for (const char c : text.substr(0, 128)) {
        if (c > ' ' && c < '\x7f') out += c;
    }
    return out;
}

net::Headers headers_of(const Answer& answer, const pipeline::Served* served) {
    net::Headers headers;
    headers.emplace_back("x-molly-receipt", answer.id);
    const bool anthropic = answer.face == Face::anthropic_messages;
    headers.emplace_back(anthropic ? "request-id" : "x-request-id", answer.id);
    if (served == nullptr) return headers;
    headers.emplace_back("x-molly-target", header_text(served->target));
    headers.emplace_back("x-molly-tier", to_string(served->tier));
    if (!served->adapter.empty())
        headers.emplace_back("x-molly-adapter", header_text(served->adapter));
    if (served->aliased) headers.emplace_back("x-molly-alias", header_text(answer.asked));
    return headers;
}

std::string_view dialect_of(Face face) noexcept {
    switch (face) {
        case Face::anthropic_messages:
            return "anthropic";
        case Face::ollama_chat:
        case Face::ollama_generate:
        case Face::ollama_embed:
            return "ollama";
        case Face::openai_chat:
        case Face::openai_completions:
        case Face::openai_responses:
        case Face::openai_embeddings:
            break;
    }
    return "openai";
}

/// Fills what the edge knows of a request.
void complete(domain::Request& request, Exchange& exchange, std::string_view dialect) {
    request.id = "req_" + seal::ordered_token(exchange.parts.clock.wall());
    request.dialect = dialect;
    request.caller = members::caller_of(exchange.key);
    if (request.caller.app.empty())
        request.caller.app = header_text(net::header(exchange.request.headers, "user-agent"));
    request.received = exchange.request.received;
    request.cancellation = exchange.responder.cancellation();
    // Ollama appends a tag to names that have none.
    constexpr std::string_view latest = ":latest";
    if (dialect == "ollama" && request.model.ends_with(latest))
        request.model.resize(request.model.size() - latest.size());
}

/// The session that the caller opened for this request checks drafts of its answer. Who has none of
/// that name gets the answer as always.
void join_session(const Exchange& exchange, const std::string& request_id) {
    const std::string id(net::header(exchange.request.headers, dialects::drafts_header));
    if (id.empty() || exchange.parts.engine == nullptr) return;
    const auto session = exchange.parts.engine->verification(id, owner_of(exchange.key));
    if (!session || !session->serve(request_id))
        log_event(LogLevel::info, "drafts_without_session", {{"request", request_id}});
}

/// Puts the earlier turns of a Responses conversation before the new ones.
Task<Result<void>> continue_conversation(Exchange& exchange, Answer& answer,
                                         domain::Request& request) {
    Conversation& conversation = answer.conversation;
    if (!answer.decoded.previous_response_id.empty()) {
        CO_TRY(const std::string text, co_await exchange.parts.store.get_response(
                                           answer.decoded.previous_response_id, answer.member));
        CO_TRY(conversation, conversation_from(text));
        std::vector<domain::Message> messages = conversation.messages;
        // Instructions of the new call stay first; they are not carried over from the old one.
        const auto turns = std::find_if(
            request.messages.begin(), request.messages.end(),
            [](const domain::Message& message) { return message.role != domain::Role::system; });
        request.messages.insert(turns, messages.begin(), messages.end());
        if (request.extensions.conversation.empty())
            request.extensions.conversation = conversation.conversation;
    }
    conversation.conversation = request.extensions.conversation;
    conversation.messages.clear();
    for (const domain::Message& message : request.messages) {
        if (message.role != domain::Role::system) conversation.messages.push_back(message);
    }
    co_return Result<void>();
}

/// Keeps the conversation as its label allows. A store that cannot is no reason to withhold the
/// answer: the next call learns it from `not_found`.
Task<void> keep_conversation(Exchange& exchange, Answer& answer,
                             const pipeline::Answered& answered) {
    if (answer.face != Face::openai_responses || !answer.decoded.store) co_return;
    // A call that chains to none is known by its first turns, as on the other faces, so that a
    // history which is sent again keeps its label. Those that chain to it take that name as theirs.
    const std::string& name = answered.trace->conversation;
    if (answer.conversation.conversation.empty() && name.starts_with(answer.member + "/"))
        answer.conversation.conversation = name.substr(answer.member.size() + 1);
    answer.conversation.messages.push_back(turn_of(answered.response));
    answer.conversation.response =
        dialects::encode_response(answer.face, answer.envelope, answered.response);
    const auto encoded = parse_json(answer.conversation.response);
    if (!encoded || !encoded->is_object()) co_return;
    const json::value* id = encoded->get_object().if_contains("id");
    if (id == nullptr || !id->is_string()) co_return;
    std::string stored_as(id->get_string());
    std::string text = sealed_text(answer.conversation);
    const auto kept = co_await exchange.parts.store.put_response(
        std::move(stored_as), std::move(text), answered.trace->label, answer.member);
    if (!kept) {
        log_event(LogLevel::warning, "response_not_stored",
                  {{"id", answer.id}, {"code", to_string(kept.error().code())}});
    }
}

/// The whole answer is encoded at the end; until then only who answers is of interest.
class WholeSink final : public pipeline::AnswerSink {
public:
    Task<Result<void>> begin(const pipeline::Served&) override { co_return Result<void>(); }
    Task<Result<void>> write(const domain::Delta&) override { co_return Result<void>(); }
};

class StreamSink final : public pipeline::AnswerSink {
public:
    explicit StreamSink(Stream& stream) : stream_(stream) {}
    Task<Result<void>> begin(const pipeline::Served& served) override {
        return stream_.open(served);
    }
    Task<Result<void>> write(const domain::Delta& delta) override { return stream_.write(delta); }

private:
    Stream& stream_;
};

Task<void> answer_whole(Exchange& exchange, Answer& answer, domain::Request request) {
    WholeSink sink;
    const auto answered =
        co_await exchange.parts.pipeline.run(std::move(request), exchange.key, sink);
    if (!answered) {
        co_await exchange.send_error(answered.error(), headers_of(answer, nullptr));
        co_return;
    }
    answer.envelope.model = answered->served.model;
    co_await keep_conversation(exchange, answer, *answered);
    std::string body = dialects::encode_response(answer.face, answer.envelope, answered->response);
    co_await exchange.send(200, "application/json", std::move(body),
                           headers_of(answer, &answered->served));
}

Task<void> answer_stream(Exchange& exchange, Answer& answer, domain::Request request,
                         std::shared_ptr<KeepAlive> keep_alive) {
    const Executor executor = co_await boost::asio::this_coro::executor;
    const auto opener = [&exchange, &answer](const pipeline::Served* served) {
        if (served != nullptr) answer.envelope.model = served->model;
        net::Headers more = headers_of(answer, served);
        more.emplace_back("cache-control", "no-store");
        Opening opening;
        opening.headers = exchange.headers(dialects::stream_media_type(answer.face), more);
        opening.encoder = dialects::make_stream_encoder(answer.face, answer.envelope);
        return opening;
    };
    const auto stream =
        std::make_shared<Stream>(exchange.responder, executor, exchange.parts.clock, opener);
    // Lines of JSON have no comments, so such a stream opens with its first piece only.
    if (dialects::stream_media_type(answer.face) == "text/event-stream") keep_alive->watch(stream);
    StreamSink sink(*stream);
    const auto answered =
        co_await exchange.parts.pipeline.run(std::move(request), exchange.key, sink);
    if (answered) {
        co_await keep_conversation(exchange, answer, *answered);
        [[maybe_unused]] const auto sent = co_await stream->end(answered->response);
    } else if (stream->is_open()) {
        const Error error = exchange.told(answered.error());
        [[maybe_unused]] const auto sent = co_await stream->fail_open(error);
    } else {
        co_await stream->retire();
        co_await exchange.send_error(answered.error(), headers_of(answer, nullptr));
    }
}

}  // namespace

Task<void> generate(Exchange& exchange, Face face, std::shared_ptr<KeepAlive> keep_alive) {
    auto decoded = dialects::decode_request(face, exchange.request.body, exchange.options.json);
    if (!decoded) {
        co_await exchange.send_error(decoded.error());
        co_return;
    }
    domain::Request request = std::move(decoded->request);
    complete(request, exchange, dialect_of(face));
    Answer answer;
    answer.face = face;
    answer.id = request.id;
    exchange.request_id = request.id;
    join_session(exchange, request.id);
    answer.asked = request.model;
    answer.member = owner_of(exchange.key);
    answer.decoded = std::move(*decoded);
    if (face == Face::openai_responses) {
        const auto continued = co_await continue_conversation(exchange, answer, request);
        if (!continued) {
            co_await exchange.send_error(continued.error());
            co_return;
        }
    }
    if (face == Face::openai_responses || request.echo) {
        answer.echo = request;
        answer.envelope.request = &answer.echo;
        request.echo = false;  // the encoder repeats the prompt, so the target need not
    }
    answer.envelope.id = request.id;
    answer.envelope.model = request.model;
    answer.envelope.created = exchange.parts.clock.wall();
    answer.envelope.usage_in_stream = answer.decoded.usage_in_stream;
    answer.envelope.base64_embeddings = answer.decoded.base64_embeddings;
    answer.envelope.instructions = answer.decoded.instructions;
    answer.envelope.previous_response_id = answer.decoded.previous_response_id;
    answer.envelope.store = answer.decoded.store;
    answer.envelope.legacy_embeddings = answer.decoded.legacy_embeddings;
    if (request.extensions.explain) {
        if (const auto decision = exchange.parts.pipeline.explain(request, exchange.key))
            answer.envelope.decision = to_text(json::value(to_json(*decision)));
    }
    // The body is decoded: its bytes need not wait for the answer.
    std::string().swap(exchange.request.body);
    if (request.stream) {
        co_await answer_stream(exchange, answer, std::move(request), std::move(keep_alive));
    } else {
        co_await answer_whole(exchange, answer, std::move(request));
    }
}

Task<void> explain(Exchange& exchange) {
    auto decoded =
        dialects::decode_request(Face::openai_chat, exchange.request.body, exchange.options.json);
    if (!decoded) {
        co_await exchange.send_error(decoded.error());
        co_return;
    }
    complete(decoded->request, exchange, "molly");
    const auto rehearsed = exchange.parts.pipeline.rehearse(std::move(decoded->request));
    if (rehearsed) {
        json::object out = to_json(rehearsed->decision);
        out["profile"] = to_json(rehearsed->capability);
        co_await exchange.send_json(to_text(json::value(std::move(out))));
    } else {
        co_await exchange.send_error(rehearsed.error());
    }
}

Task<void> count_tokens(Exchange& exchange) {
    // The body has no max_tokens here, which a Messages request must have.
    std::string body = exchange.request.body;
    auto parsed = parse_json(body, exchange.options.json);
    if (parsed && parsed->is_object() && !parsed->get_object().contains("max_tokens")) {
        parsed->get_object()["max_tokens"] = 1;
        body = to_text(*parsed);
    }
    const auto decoded =
        dialects::decode_request(Face::anthropic_messages, body, exchange.options.json);
    if (!decoded) {
        co_await exchange.send_error(decoded.error());
        co_return;
    }
    json::object out;
    out["input_tokens"] = annotate::estimate_prompt_tokens(decoded->request);
    out["molly"] = json::object{{"estimate", true}};
    co_await exchange.send_json(to_text(json::value(std::move(out))));
}

}  // namespace molly::gateway
