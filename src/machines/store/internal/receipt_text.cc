#include "store/internal/receipt_text.h"

#include <fmt/format.h>

#include "store/internal/object_text.h"
#include "store/trace_text.h"

namespace molly::store::internal {
namespace {

void append_label(std::string& out, const domain::Label& label) {
    ObjectText object(out);
    object.text("class", to_string(label.sensitivity));
    if (label.residency.constrained()) {
        object.texts("residency", label.residency.places());
    } else {
        object.name("residency") += "null";
    }
}

void append_target(std::string& out, const domain::Trace& trace) {
    ObjectText object(out);
    object.text("target", trace.target);
    object.text("adapter", trace.adapter);
    object.text("model", trace.model);
    object.text("model_hash", trace.model_hash);
}

void append_redactions(std::string& out, const domain::Redactions& redactions) {
    ObjectText object(out);
    for (const auto& [kind, count] : redactions)
        object.number(to_string(kind), count);
}

/// Over all attempts.
domain::Redactions redactions_of(const domain::Trace& trace) {
    domain::Redactions all;
    for (const domain::Attempt& attempt : trace.attempts) {
        for (const auto& [kind, count] : attempt.redactions)
            all[kind] += count;
    }
    return all;
}

void append_attempt(std::string& out, const domain::Attempt& attempt) {
    ObjectText object(out);
    object.text("target", attempt.target);
    object.text("adapter", attempt.adapter);
    object.text("tier", to_string(attempt.tier));
    object.text("endpoint", attempt.endpoint);
    object.boolean("peer_authenticated", attempt.peer_authenticated);
    object.number("bytes_sent", attempt.bytes_sent);
    object.number("bytes_received", attempt.bytes_received);
    object.text("outcome", attempt.failed ? to_string(*attempt.failed) : "answered");
    if (attempt.cause != domain::Cause::step) object.text("cause", to_string(attempt.cause));
    if (!attempt.redactions.empty())
        append_redactions(object.name("redactions"), attempt.redactions);
}

void append_tokens(std::string& out, const domain::Usage& usage) {
    ObjectText object(out);
    object.number("prompt", usage.prompt_tokens);
    object.number("cached", usage.cached_tokens);
    object.number("answer", usage.answer_tokens);
    object.number("reasoning", usage.reasoning_tokens);
    object.text("source", to_string(usage.source));
}

void append_act(std::string& out, const domain::Trace& trace) {
    ObjectText object(out);
    object.text("conversation", trace.conversation);
    object.text("by", trace.member);
    object.text("key", trace.key_id);
    object.text("from", to_string(trace.lowered->from));
    object.text("to", to_string(trace.lowered->to));
    object.text("reason", trace.lowered->reason);
}

constexpr std::string_view opening = "{\"version\":1,\"id\":\"";
constexpr std::string_view key_opening = "{\"version\":1,\"id\":\"key-";

}  // namespace

void append_receipt(std::string& out, const domain::Trace& trace) {
    ObjectText object(out);
    object.number("version", 1);
    object.text("id", trace.id);
    object.text("time", to_text(trace.time));
    object.text("operation", trace.lowered ? "declassify" : to_string(trace.operation));
    append_label(object.name("label"), trace.label);
    object.boolean("declassified", trace.declassified);
    append_tiers(object.name("permitted"), trace.decision.permitted);
    object.text("rule", trace.decision.rule);
    object.text("rules_hash", trace.rules_hash);
    append_target(object.name("decision"), trace);
    object.array("attempts", trace.attempts, append_attempt);
    append_tokens(object.name("tokens"), trace.usage);
    object.text("cost", to_string(trace.cost));
    object.text("outcome", to_string(trace.outcome));
    append_redactions(object.name("redactions"), redactions_of(trace));
    if (trace.lowered) append_act(object.name("declassification"), trace);
}

std::string receipt_id(std::string_view body) {
    if (!body.starts_with(opening)) return {};
    const auto value = parse_json(body);
    if (!value || !value->is_object()) return {};
    return text_at(value->get_object(), "id");
}

KeyChangeText key_change(WallTime time, std::string_view from, std::string_view public_key) {
    return {.time = to_text(time),
            .from = std::string(from),
            .to = seal::key_id(public_key),
            .public_key = std::string(public_key)};
}

std::string key_change_id(const KeyChangeText& change) {
    return "key-" + change.to;
}

void append_key_change(std::string& out, const KeyChangeText& change) {
    ObjectText object(out);
    object.number("version", 1);
    object.text("id", key_change_id(change));
    object.text("time", change.time);
    object.text("key_from", change.from);
    object.text("key_to", change.to);
    object.text("public_key", seal::to_hex(change.public_key));
}

std::optional<KeyChangeText> key_change_from(std::string_view body) {
    if (!body.starts_with(key_opening)) return std::nullopt;
    const auto value = parse_json(body);
    if (!value || !value->is_object()) return std::nullopt;
    const json::object& object = value->get_object();
    auto public_key = seal::from_hex(text_at(object, "public_key"));
    if (!public_key || public_key->size() != 32) return std::nullopt;
    KeyChangeText change{.time = text_at(object, "time"),
                         .from = text_at(object, "key_from"),
                         .to = seal::key_id(*public_key),
                         .public_key = *public_key};
    std::string written;
    append_key_change(written, change);
    if (written != body) return std::nullopt;
    return change;
}

seal::Hash genesis(std::string_view public_key) {
    return seal::sha256("molly receipt log 1\n" + std::string(public_key));
}

std::string head_text(std::uint64_t sequence, const seal::Hash& hash) {
    return fmt::format("molly receipt head 1\n{}\n{}\n", sequence, seal::to_hex(hash));
}

}  // namespace molly::store::internal
