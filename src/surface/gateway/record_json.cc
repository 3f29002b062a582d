#include "gateway/record_json.h"

#include <cstdio>
#include <ctime>

#include <fmt/format.h>

namespace molly::gateway {
namespace {

double milliseconds(std::chrono::microseconds time) {
    return static_cast<double>(time.count()) / 1000.0;
}

json::array strings(const std::set<std::string, std::less<>>& values) {
    json::array out;
    for (const std::string& value : values)
        out.emplace_back(value);
    return out;
}

json::value to_json(const domain::Residency& residency) {
    if (!residency.constrained()) return nullptr;
    return strings(residency.places());
}

json::object to_json(const domain::Usage& usage) {
    return json::object{{"prompt_tokens", usage.prompt_tokens},
                        {"cached_tokens", usage.cached_tokens},
                        {"answer_tokens", usage.answer_tokens},
                        {"reasoning_tokens", usage.reasoning_tokens},
                        {"source", std::string(to_string(usage.source))}};
}

json::array tiers_of(domain::TierSet tiers) {
    json::array out;
    for (const domain::Tier tier : domain::all_tiers) {
        if (tiers.contains(tier)) out.emplace_back(std::string(to_string(tier)));
    }
    return out;
}

json::object to_json(const domain::Candidate& candidate) {
    json::object out;
    out["target"] = candidate.target;
    if (!candidate.adapter.empty()) out["adapter"] = candidate.adapter;
    out["tier"] = std::string(to_string(candidate.tier));
    if (!candidate.excluded_by.empty()) {
        out["excluded_by"] = candidate.excluded_by;
        return out;
    }
    out["quality"] = candidate.quality;
    if (candidate.evidence > 0) {
        out["mean"] = candidate.mean;
        out["evidence"] = candidate.evidence;
    }
    if (candidate.specialist) out["specialist"] = true;
    if (candidate.weight > 0) out["weight"] = candidate.weight;
    out["cost"] = to_string(candidate.cost);
    out["latency_ms"] = candidate.latency.count();
    out["score"] = candidate.score;
    return out;
}

json::object to_json(const domain::Attempt& attempt) {
    json::object out;
    out["target"] = attempt.target;
    if (!attempt.adapter.empty()) out["adapter"] = attempt.adapter;
    out["tier"] = std::string(to_string(attempt.tier));
    if (!attempt.endpoint.empty()) out["endpoint"] = attempt.endpoint;
    out["peer_authenticated"] = attempt.peer_authenticated;
    out["bytes_sent"] = attempt.bytes_sent;
    out["bytes_received"] = attempt.bytes_received;
    if (attempt.failed) {
        out["failed"] = std::string(to_string(*attempt.failed));
        out["failure"] = attempt.failure;
    }
    if (attempt.confidence) {
        out["confidence"] = *attempt.confidence;
        out["confidence_from"] = std::string(to_string(attempt.confidence_from));
    }
    if (attempt.rejected) out["rejected"] = true;
    if (attempt.cause != domain::Cause::step) out["cause"] = std::string(to_string(attempt.cause));
    if (attempt.drafted > 0) {
        out["drafted"] = attempt.drafted;
        out["accepted"] = attempt.accepted;
    }
    out["usage"] = to_json(attempt.usage);
    out["cost"] = to_string(attempt.cost);
    out["first_token_ms"] = milliseconds(attempt.first_token);
    out["duration_ms"] = milliseconds(attempt.duration);
    json::object redactions;
    for (const auto& [kind, count] : attempt.redactions)
        redactions[std::string(to_string(kind))] = count;
    if (!redactions.empty()) out["redactions"] = std::move(redactions);
    return out;
}

json::array signals_of(const domain::Trace& trace) {
    json::array out;
    for (const domain::Signal& signal : trace.signals) {
        out.push_back(json::object{{"source", signal.source},
                                   {"class", std::string(to_string(signal.sensitivity))},
                                   {"count", signal.count}});
    }
    return out;
}

}  // namespace

std::string to_time(WallTime time) {
    const auto since = time.time_since_epoch();
    const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
    const auto rest = std::chrono::duration_cast<std::chrono::milliseconds>(since - seconds);
    const std::time_t calendar = seconds.count();
    std::tm fields{};
    gmtime_r(&calendar, &fields);
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", fields.tm_year + 1900,
                       fields.tm_mon + 1, fields.tm_mday, fields.tm_hour, fields.tm_min,
                       fields.tm_sec, rest.count());
}

Result<WallTime> time_from(std::string_view text) {
    const std::string copy(text);
    std::tm fields{};
    const char* rest = strptime(copy.c_str(), "%Y-%m-%dT%H:%M:%S", &fields);
    if (rest == nullptr &&
        (fields = {}, rest = strptime(copy.c_str(), "%Y-%m-%d", &fields)) == nullptr) {
        return fail(Error(ErrorCode::invalid_request,
                          "a time must be like 2026-01-31 or 2026-01-31T12:00:00Z (UTC)")
                        .italian("una data deve essere come 2026-01-31 o 2026-01-31T12:00:00Z "
                                 "(UTC)"));
    }
    return WallTime(std::chrono::seconds(timegm(&fields)));
}

json::object to_json(const domain::CapabilityProfile& needs) {
    json::object out;
    out["prompt_tokens"] = needs.prompt_tokens;
    out["answer_tokens"] = needs.answer_tokens;
    if (!needs.classified) return out;
    out["task"] = std::string(to_string(needs.task));
    out["task_share"] = needs.task_share;
    out["difficulty"] = needs.difficulty;
    out["out_of_scope"] = needs.out_of_scope;
    json::object fields;
    for (std::size_t i = 0; i < domain::fields_count; ++i) {
        const float share = needs.fields[i];
        // What is hardly there is left out.
        if (share >= 0.01F) fields[std::string(to_string(static_cast<domain::Field>(i)))] = share;
    }
    out["fields"] = std::move(fields);
    return out;
}

json::object to_json(const domain::Label& label) {
    json::object out;
    out["class"] = std::string(to_string(label.sensitivity));
    out["residency"] = to_json(label.residency);
    out["origins"] = strings(label.origins);
    return out;
}

json::object to_json(const domain::Decision& decision) {
    json::array candidates;
    for (const domain::Candidate& candidate : decision.candidates)
        candidates.push_back(to_json(candidate));
    json::object out;
    out["rule"] = decision.rule;
    out["permitted"] = tiers_of(decision.permitted);
    out["residency"] = to_json(decision.residency);
    out["mode"] = std::string(to_string(decision.mode));
    if (!decision.t3_closed.empty()) out["t3_closed"] = decision.t3_closed;
    out["candidates"] = std::move(candidates);
    return out;
}

json::object to_json(const domain::Trace& trace) {
    json::array attempts;
    for (const domain::Attempt& attempt : trace.attempts)
        attempts.push_back(to_json(attempt));
    json::object out;
    out["id"] = trace.id;
    out["time"] = to_time(trace.time);
    out["outcome"] = std::string(to_string(trace.outcome));
    if (!trace.failure.empty()) out["failure"] = trace.failure;
    if (trace.finish) out["finish"] = std::string(to_string(*trace.finish));
    out["dialect"] = trace.dialect;
    out["operation"] = std::string(to_string(trace.operation));
    out["stream"] = trace.stream;
    out["member"] = trace.member;
    out["key_id"] = trace.key_id;
    out["app"] = trace.app;
    out["model_asked"] = trace.model_asked;
    out["conversation"] = trace.conversation;
    out["label"] = to_json(trace.label);
    out["signals"] = signals_of(trace);
    out["declassified"] = trace.declassified;
    out["profile"] = to_json(trace.capability);
    if (!trace.caveat.empty()) out["caveat"] = trace.caveat;
    out["rules_hash"] = trace.rules_hash;
    out["decision"] = to_json(trace.decision);
    out["attempts"] = std::move(attempts);
    out["target"] = trace.target;
    if (!trace.adapter.empty()) out["adapter"] = trace.adapter;
    out["model"] = trace.model;
    out["model_hash"] = trace.model_hash;
    out["usage"] = to_json(trace.usage);
    out["cost"] = to_string(trace.cost);
    out["first_token_ms"] = milliseconds(trace.first_token);
    out["duration_ms"] = milliseconds(trace.duration);
    if (trace.lowered) {
        out["lowered"] = json::object{{"from", std::string(to_string(trace.lowered->from))},
                                      {"to", std::string(to_string(trace.lowered->to))},
                                      {"reason", trace.lowered->reason}};
    }
    return out;
}

json::object to_json(const router::TargetView& view) {
    const domain::TargetSpec& spec = *view.spec;
    json::array capabilities;
    const auto list = [&](bool has, const char* name) {
        if (has) capabilities.emplace_back(name);
    };
    list(spec.capabilities.chat, "chat");
    list(spec.capabilities.embed, "embed");
    list(spec.capabilities.tools, "tools");
    list(spec.capabilities.json_schema, "json_schema");
    list(spec.capabilities.logprobs, "logprobs");
    list(spec.capabilities.images, "images");
    json::object out;
    out["name"] = spec.id;
    out["tier"] = std::string(to_string(spec.tier));
    out["dialect"] = spec.local ? "engine" : std::string(to_string(spec.dialect));
    out["endpoint"] = spec.local ? "" : to_string(spec.endpoint);
    out["model"] = spec.model;
    out["controller"] = spec.controller;
    out["jurisdiction"] = spec.jurisdiction;
    out["boundaries"] = strings(spec.boundaries);
    out["capabilities"] = std::move(capabilities);
    out["context_tokens_max"] = spec.capabilities.context_tokens_max;
    out["quality"] = spec.quality;
    out["available"] = view.available;
    if (!view.available) out["retry_after_ms"] = view.retry_after.count();
    out["first_token_ms"] = view.first_token_ms;
    out["token_ms"] = view.token_ms;
    out["queue_depth"] = view.queue_depth;
    return out;
}

json::object to_json(const members::Key& key) {
    json::object out;
    out["id"] = key.id;
    out["hint"] = key.hint;
    out["parent"] = key.parent;
    out["created"] = to_time(key.created);
    out["revoked"] = key.revoked ? json::value(to_time(*key.revoked)) : json::value(nullptr);
    auto scope = parse_json(members::to_text(key.scope));
    out["scope"] = scope ? std::move(*scope) : json::value(nullptr);
    return out;
}

}  // namespace molly::gateway
