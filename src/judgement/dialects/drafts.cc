#include "dialects/drafts.h"

#include <limits>
#include <utility>

#include "dialects/internal/fields.h"
#include "dialects/internal/json_text.h"

namespace molly::dialects {
namespace {

constexpr JsonLimits reply_limits = {.bytes_max = 4U << 20U, .depth_max = 8};
constexpr double milliseconds_max = 1e9;

std::vector<std::int32_t> tokens_of(const Fields& fields, std::string_view name) {
    std::vector<std::int32_t> tokens;
    const json::array* array = fields.array(name);
    if (array == nullptr) return tokens;
    for (const json::value& value : *array) {
        json::error_code error;
        const auto token = value.to_number<std::int64_t>(error);
        if (error || token < 0 || token > std::numeric_limits<std::int32_t>::max()) {
            fields.invalid(name, "must hold token ids: whole numbers from 0");
            break;
        }
        tokens.push_back(static_cast<std::int32_t>(token));
    }
    return tokens;
}

void append_tokens(JsonText& json, std::string_view name, const std::vector<std::int32_t>& tokens) {
    json.key(name).open_array();
    for (const std::int32_t token : tokens)
        json.number(token);
    json.close_array();
}

/// Reads one object. Errors: invalid_request, too_large.
template <class Read>
Result<void> read_object(std::string_view body, const JsonLimits& limits, Read read) {
    TRY(const json::value parsed, parse_json(body, limits));
    const json::object* object = parsed.if_object();
    if (object == nullptr) return fail(ErrorCode::invalid_request, "the body must be an object");
    const Place root;
    Faults faults;
    read(Fields(*object, root, faults));
    if (faults.any()) return fail(faults.take());
    return {};
}

/// The same for what another node said.
template <class Read>
Result<void> read_reply(std::string_view body, Read read) {
    if (read_object(body, reply_limits, read)) return {};
    return fail(ErrorCode::upstream_failed, "the other node's reply to a draft is malformed");
}

}  // namespace

Result<DraftCall> decode_draft_call(std::string_view body, const JsonLimits& limits) {
    DraftCall call;
    TRY_DO(read_object(body, limits, [&](const Fields& fields) {
        call.session = fields.text_or_empty("session");
        if (call.session.empty()) {
            call.vocabulary = fields.required_text("vocabulary");
            call.waits = fields.flag("wait");
            return;
        }
        call.from = fields.count("from").value_or(0);
        call.tokens = tokens_of(fields, "draft");
        call.alone = fields.flag("alone");
    }));
    return call;
}

std::string encode_draft_call(const DraftCall& call) {
    std::string out;
    JsonText json(out);
    json.open();
    if (call.session.empty()) {
        json.field("vocabulary", call.vocabulary);
        if (call.waits) json.field("wait", true);
    } else {
        json.field("session", call.session).field("from", call.from);
        append_tokens(json, "draft", call.tokens);
        if (call.alone) json.field("alone", true);
    }
    json.close();
    return out;
}

Result<DraftSession> decode_draft_session(std::string_view body) {
    DraftSession session;
    TRY_DO(read_reply(body, [&](const Fields& fields) {
        session.id = fields.required_text("session");
        session.draft_tokens_max = fields.count("draft_tokens_max", 1).value_or(1);
        session.patience = std::chrono::milliseconds(fields.count("wait_ms").value_or(0));
    }));
    return session;
}

std::string encode_draft_session(const DraftSession& session) {
    std::string out;
    JsonText json(out);
    json.open()
        .field("session", session.id)
        .field("draft_tokens_max", session.draft_tokens_max)
        .field("wait_ms", session.patience.count())
        .close();
    return out;
}

Result<DraftVerdict> decode_draft_verdict(std::string_view body) {
    DraftVerdict verdict;
    TRY_DO(read_reply(body, [&](const Fields& fields) {
        verdict.tokens = tokens_of(fields, "tokens");
        const auto most = static_cast<std::uint32_t>(verdict.tokens.size());
        verdict.accepted = fields.count("accepted", 0, most).value_or(0);
        verdict.ended = fields.flag("ended");
        verdict.check_ms = fields.number("check_ms", 0, milliseconds_max).value_or(0);
        verdict.step_ms = fields.number("step_ms", 0, milliseconds_max).value_or(0);
    }));
    return verdict;
}

std::string encode_draft_verdict(const DraftVerdict& verdict) {
    std::string out;
    JsonText json(out);
    json.open().field("accepted", verdict.accepted);
    append_tokens(json, "tokens", verdict.tokens);
    json.field("ended", verdict.ended)
        .field("check_ms", verdict.check_ms)
        .field("step_ms", verdict.step_ms)
        .close();
    return out;
}

}  // namespace molly::dialects
