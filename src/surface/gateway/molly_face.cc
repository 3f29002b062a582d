#include "gateway/molly_face.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "gateway/conversation.h"
#include "gateway/listing.h"
#include "gateway/record_json.h"
#include "targets/target.h"

namespace molly::gateway {
namespace {

bool may_see(const members::Key& key, const domain::Trace& trace) {
    if (key.scope.admin || trace.key_id == key.id) return true;
    return !key.scope.member.empty() && trace.member == key.scope.member;
}

/// Somebody else's record does not exist for this caller.
Error no_trace(std::string_view id) {
    return Error(ErrorCode::not_found, fmt::format("there is no trace {} for this key; `molly "
                                                   "traces list` shows those that there are",
                                                   id.substr(0, 64)))
        .italian(fmt::format("per questa chiave non c'è la traccia {}; `molly traces list` mostra "
                             "quelle che ci sono",
                             id.substr(0, 64)));
}

Error admins_only() {
    return Error(ErrorCode::denied, "only an admin key may do this")
        .reason("admin_only")
        .italian("solo una chiave di amministrazione può farlo");
}

Error no_rules_file() {
    return Error(ErrorCode::unsupported, "rules are read again by a running `molly serve` only")
        .italian("le regole si rileggono solo con `molly serve` in funzione");
}

Result<store::TraceQuery> query_of(const Exchange& exchange) {
    const std::string& query = exchange.request.query;
    store::TraceQuery out;
    if (const std::string limit = query_value(query, "limit"); !limit.empty()) {
        const auto [end, fault] =
            std::from_chars(limit.data(), limit.data() + limit.size(), out.limit);
        if (fault != std::errc() || *end != '\0' || out.limit == 0 || out.limit > 1000) {
            return fail(Error(ErrorCode::invalid_request, "limit must be from 1 to 1000")
                            .param("limit")
                            .italian("limit deve essere da 1 a 1000"));
        }
    }
    out.target = query_value(query, "target");
    out.outcome = query_value(query, "outcome");
    out.member = query_value(query, "member");
    if (const std::string before = query_value(query, "before"); !before.empty()) {
        TRY(out.before, time_from(before));
    }
    if (!exchange.key.scope.admin) out.member = exchange.key.scope.member;
    return out;
}

struct AskedAct {
    domain::Declassification act;
    std::string conversation;
};

Error bad_field(std::string_view field, std::string_view english, std::string_view italian) {
    return Error(ErrorCode::invalid_request, fmt::format("{}: {}", field, english))
        .param(std::string(field))
        .italian(fmt::format("{}: {}", field, italian));
}

Result<AskedAct> declassification_of(const Exchange& exchange) {
    TRY(const json::value parsed, parse_json(exchange.request.body, exchange.options.json));
    const json::object* body = parsed.if_object();
    const auto text = [&](std::string_view name) {
        const json::value* value = body == nullptr ? nullptr : body->if_contains(name);
        const json::string* found = value == nullptr ? nullptr : value->if_string();
        return found == nullptr ? std::string() : std::string(found->data(), found->size());
    };
    AskedAct asked;
    asked.conversation = text("conversation");
    if (asked.conversation.empty())
        return fail(bad_field("conversation", "name it as traces do: member/id",
                              "indicarla come le tracce: membro/id"));
    const auto to = domain::sensitivity_from(text("class"));
    if (!to) {
        return fail(bad_field("class", "must be public, standard, private or secret",
                              "deve essere public, standard, private o secret"));
    }
    asked.act.to = *to;
    asked.act.reason = text("reason");
    return asked;
}

/// Asks one target whether it is there, with nothing of anybody's content.
Task<Result<void>> probe_target(Exchange& exchange, const std::string& id) {
    policy::ArtifactLabel label;
    label.purpose = "targets.probe";
    label.label.sensitivity = domain::Sensitivity::public_;
    CO_TRY(const policy::Permit permit, exchange.parts.policy.clear_artifact(label));
    for (targets::Target* target : exchange.parts.pipeline.targets()) {
        if (target->spec().id == id) co_return co_await target->probe(permit);
    }
    co_return fail(ErrorCode::not_found, "no such target");
}

json::object adapter_state(const engine::AdapterMemory& memory) {
    return json::object{{"together", memory.together}, {"kernel", memory.kernel},
                        {"layers", memory.layers},     {"hot", memory.hot},
                        {"bytes", memory.bytes},       {"bytes_max", memory.bytes_max},
                        {"spare", memory.spare},       {"bytes_pinned", memory.bytes_pinned},
                        {"waiting", memory.waiting},   {"hits", memory.hits},
                        {"loads", memory.loads},       {"evictions", memory.evictions}};
}

json::object memory_state(const engine::MemoryState& memory) {
    return json::object{{"bytes", memory.bytes},       {"bytes_max", memory.bytes_max},
                        {"cache", memory.cache},       {"cache_resident", memory.cache_resident},
                        {"prefixes", memory.prefixes}, {"parked", memory.parked},
                        {"elastic", memory.elastic}};
}

json::object stored_prefixes(const engine::StoredPrefixes& stored) {
    return json::object{{"count", stored.count},
                        {"bytes", stored.bytes},
                        {"loaded", stored.loaded},
                        {"saved", stored.saved},
                        {"refused", stored.refused}};
}

json::object speculation_state(const engine::SpeculationState& state) {
    json::object out{{"on", state.on},
                     {"drafted", state.drafted},
                     {"accepted", state.accepted},
                     {"steps", state.steps}};
    out["draft_model"] =
        state.draft_model.empty() ? json::value(nullptr) : json::value(state.draft_model);
    return out;
}

}  // namespace

Task<void> health(Exchange& exchange) {
    json::object out;
    out["status"] = "ok";
    if (exchange.authenticated) {
        const engine::Description* model = exchange.parts.model;
        out["version"] = exchange.options.version;
        out["model"] = model != nullptr ? json::value(model->name) : json::value(nullptr);
        json::array targets;
        for (const router::TargetView& view : visible_targets(exchange)) {
            targets.push_back(json::object{{"name", view.spec->id},
                                           {"tier", std::string(to_string(view.spec->tier))},
                                           {"available", view.available}});
        }
        out["targets"] = std::move(targets);
        if (exchange.parts.engine != nullptr) {
            out["adapters"] = adapter_state(exchange.parts.engine->adapters());
            out["memory"] = memory_state(exchange.parts.engine->memory());
            json::object speculation = speculation_state(exchange.parts.engine->speculation());
            speculation["vocabulary"] = exchange.parts.engine->describe().vocabulary;
            out["speculation"] = std::move(speculation);
            out["prefixes_on_disk"] = stored_prefixes(exchange.parts.engine->stored_prefixes());
        }
        const std::string_view outside = exchange.parts.pipeline.third_parties();
        out["t3"] = outside == "open" ? "open" : fmt::format("closed: {}", outside);
    }
    co_await exchange.send_json(to_text(json::value(std::move(out))));
}

Task<void> whoami(Exchange& exchange) {
    co_await exchange.send_json(to_text(json::value(to_json(exchange.key))));
}

Task<void> list_targets(Exchange& exchange) {
    const bool probe = query_value(exchange.request.query, "probe") == "true";
    json::array targets;
    for (const router::TargetView& view : visible_targets(exchange)) {
        json::object target = to_json(view);
        if (probe) {
            const auto alive = co_await probe_target(exchange, view.spec->id);
            target["fault"] = alive ? json::value(nullptr)
                                    : json::value(message_in(alive.error(), exchange.language));
        }
        targets.push_back(std::move(target));
    }
    json::object out;
    out["targets"] = std::move(targets);
    co_await exchange.send_json(to_text(json::value(std::move(out))));
}

Task<void> list_traces(Exchange& exchange) {
    auto query = query_of(exchange);
    if (!query) {
        co_await exchange.send_error(query.error());
        co_return;
    }
    const auto traces = co_await exchange.parts.store.traces(*std::move(query));
    if (!traces) {
        co_await exchange.send_error(traces.error());
        co_return;
    }
    json::array list;
    for (const domain::Trace& trace : *traces) {
        if (may_see(exchange.key, trace)) list.push_back(to_json(trace));
    }
    json::object out;
    out["traces"] = std::move(list);
    co_await exchange.send_json(to_text(json::value(std::move(out))));
}

Task<void> show_trace(Exchange& exchange, std::string id) {
    const auto trace = co_await exchange.parts.store.trace(id);
    if (!trace || !may_see(exchange.key, *trace)) {
        const bool hidden = trace || trace.error().code() == ErrorCode::not_found;
        const Error error = hidden ? no_trace(id) : trace.error();
        co_await exchange.send_error(error);
        co_return;
    }
    co_await exchange.send_json(to_text(json::value(to_json(*trace))));
}

Task<void> show_receipt(Exchange& exchange, std::string id) {
    const auto trace = co_await exchange.parts.store.trace(id);
    const auto receipt = co_await exchange.parts.store.receipt(id);
    // A receipt outlives its trace; then only an admin may still see it.
    const bool visible = trace ? may_see(exchange.key, *trace) : exchange.key.scope.admin;
    if (!receipt || !visible) {
        const bool hidden = receipt || receipt.error().code() == ErrorCode::not_found;
        const Error error = hidden ? no_trace(id) : receipt.error();
        co_await exchange.send_error(error);
        co_return;
    }
    // The body is sent byte for byte, so that its hash can be checked.
    std::string body =
        fmt::format("{{\"sequence\":{},\"id\":{},\"hash\":{},\"previous\":{},\"body\":{}}}",
                    receipt->sequence, json_string(receipt->id), json_string(receipt->hash),
                    json_string(receipt->previous), receipt->body);
    co_await exchange.send_json(std::move(body));
}

Task<void> reload_rules(Exchange& exchange) {
    if (!exchange.key.scope.admin) {
        co_await exchange.send_error(admins_only());
        co_return;
    }
    if (!exchange.parts.reload_rules) {
        const Error error = no_rules_file();
        co_await exchange.send_error(error);
        co_return;
    }
    const auto hash = co_await exchange.parts.reload_rules();
    if (!hash) {
        co_await exchange.send_error(hash.error());
        co_return;
    }
    json::object out;
    out["rules_hash"] = *hash;
    co_await exchange.send_json(to_text(json::value(std::move(out))));
}

Task<void> rotate_key(Exchange& exchange) {
    if (!exchange.key.scope.admin) {
        co_await exchange.send_error(admins_only());
        co_return;
    }
    const auto change = co_await exchange.parts.store.rotate_key();
    if (!change) {
        co_await exchange.send_error(change.error());
        co_return;
    }
    json::object out;
    out["retired"] = change->retired;
    out["key_id"] = change->key_id;
    out["sequence"] = change->sequence;
    co_await exchange.send_json(to_text(json::value(std::move(out))));
}

Task<void> list_keys(Exchange& exchange) {
    json::array keys;
    for (const members::Key& key : exchange.parts.members.list()) {
        const bool own = key.id == exchange.key.id || key.parent == exchange.key.id;
        if (exchange.key.scope.admin || own) keys.push_back(to_json(key));
    }
    json::object out;
    out["keys"] = std::move(keys);
    co_await exchange.send_json(to_text(json::value(std::move(out))));
}

Task<void> create_key(Exchange& exchange) {
    auto scope = members::scope_from(exchange.request.body);
    if (!scope) {
        co_await exchange.send_error(scope.error());
        co_return;
    }
    const auto made = co_await exchange.parts.members.create(&exchange.key, *std::move(scope));
    if (!made) {
        co_await exchange.send_error(made.error());
        co_return;
    }
    json::object out = to_json(made->key);
    out["key"] = made->text;
    co_await exchange.send(201, "application/json", to_text(json::value(std::move(out))));
}

Task<void> revoke_key(Exchange& exchange, std::string id) {
    const auto revoked = co_await exchange.parts.members.revoke(exchange.key, id);
    if (!revoked) {
        co_await exchange.send_error(revoked.error());
        co_return;
    }
    json::object out;
    out["id"] = id;
    out["revoked"] = true;
    co_await exchange.send_json(to_text(json::value(std::move(out))));
}

Task<void> declassify(Exchange& exchange) {
    auto asked = declassification_of(exchange);
    if (!asked) {
        co_await exchange.send_error(asked.error());
        co_return;
    }
    const auto done = co_await exchange.parts.pipeline.declassify(
        std::move(asked->act), std::move(asked->conversation), exchange.key);
    if (!done) {
        co_await exchange.send_error(done.error());
        co_return;
    }
    const net::Headers more = {{"x-molly-receipt", done->id}};
    co_await exchange.send(200, "application/json", to_text(json::value(to_json(*done))), more);
}

Task<void> show_metrics(Exchange& exchange) {
    if (!exchange.key.scope.admin) {
        co_await exchange.send_error(admins_only());
        co_return;
    }
    co_await exchange.send(200, "text/plain; version=0.0.4; charset=utf-8",
                           exchange.parts.metrics.render());
}

Task<void> show_response(Exchange& exchange, std::string id) {
    const auto stored = co_await exchange.parts.store.get_response(id, owner_of(exchange.key));
    if (!stored) {
        co_await exchange.send_error(stored.error());
        co_return;
    }
    auto conversation = conversation_from(*stored);
    if (!conversation) {
        co_await exchange.send_error(conversation.error());
        co_return;
    }
    co_await exchange.send_json(std::move(conversation->response));
}

Task<void> delete_response(Exchange& exchange, std::string id) {
    const auto deleted = co_await exchange.parts.store.delete_response(id, owner_of(exchange.key));
    if (!deleted) {
        co_await exchange.send_error(deleted.error());
        co_return;
    }
    json::object out;
    out["id"] = id;
    out["object"] = "response";
    out["deleted"] = true;
    co_await exchange.send_json(to_text(json::value(std::move(out))));
}

}  // namespace molly::gateway
