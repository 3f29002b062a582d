#include <algorithm>

#include <fmt/format.h>

#include "router/internal/weighed.h"

namespace molly::router {
namespace {

using std::chrono::milliseconds;

Error denied(const policy::ClearedRequest& cleared, const std::string& words) {
    const policy::Permit& permit = cleared.permit();
    return Error(ErrorCode::denied,
                 fmt::format("no target is permitted for this content: rule {} permits {}, places: "
                             "{}. {}. Declare a target there, or a class, residency or key that "
                             "permits one of these",
                             permit.rule(), to_string(permit.tiers()),
                             to_string(permit.residency()), words))
        .reason("no_target_permitted")
        .italian(fmt::format("nessuna destinazione è permessa per questo contenuto: la regola {} "
                             "permette {}, luoghi: {}. {}. Dichiarare una destinazione lì, oppure "
                             "una classe, residenza o chiave che ne permetta una",
                             permit.rule(), to_string(permit.tiers()),
                             to_string(permit.residency()), words));
}

Error context_exceeded(const policy::ClearedRequest& cleared, const Roster& roster,
                       std::span<const Weighed> weighed) {
    std::uint32_t largest = 0;
    for (const Weighed& one : weighed) {
        const domain::TargetSpec& spec = roster.spec_of(roster.pairs()[one.pair]);
        if (one.stage == Stage::context)
            largest = std::max(largest, spec.capabilities.context_tokens_max);
    }
    const std::uint32_t needed = cleared.annotated().capability.context_tokens;
    return Error(
               ErrorCode::invalid_request,
               fmt::format("the request has about {} tokens and the largest permitted context has "
                           "{}; shorten it, or set truncation",
                           needed, largest))
        .reason("context_length_exceeded")
        .param("messages")
        .italian(fmt::format("la richiesta ha circa {} token e il contesto più grande permesso ne "
                             "ha {}; accorciarla, o permettere il troncamento",
                             needed, largest));
}

Error all_down(const Roster& roster, const Moment& moment, std::span<const Weighed> weighed,
               const std::string& words) {
    milliseconds soonest = milliseconds::max();
    for (const Weighed& one : weighed) {
        const Live& live = moment.targets[roster.pairs()[one.pair].target];
        if (one.stage == Stage::health) soonest = std::min(soonest, live.retry_after);
    }
    return Error(ErrorCode::unavailable, fmt::format("every permitted target is down: {}", words))
        .reason("targets_down")
        .retry_after(
            std::max(std::chrono::seconds(1), std::chrono::ceil<std::chrono::seconds>(soonest)))
        .italian(fmt::format("ogni destinazione permessa è fuori servizio: {}", words));
}

}  // namespace

Error nothing_left(const policy::ClearedRequest& cleared, const Roster& roster,
                   const Moment& moment, std::span<const Weighed> weighed, Stage furthest,
                   const std::string& words) {
    const auto plain = [&](ErrorCode code, std::string_view english, std::string_view italian) {
        return Error(code, fmt::format("{}: {}", english, words))
            .italian(fmt::format("{}: {}", italian, words));
    };
    switch (furthest) {
        case Stage::permit:
            return denied(cleared, words);
        case Stage::adapter:
            return plain(ErrorCode::not_found, "no permitted target has this adapter",
                         "nessuna destinazione permessa ha questo adattatore")
                .reason("model_not_found")
                .param("model");
        case Stage::capability:
            return plain(ErrorCode::unsupported, "no permitted target can do this",
                         "nessuna destinazione permessa sa farlo");
        case Stage::context:
            return context_exceeded(cleared, roster, weighed);
        case Stage::cost:
            return plain(ErrorCode::exhausted, "every permitted target is over the cost limit",
                         "ogni destinazione permessa supera il limite di costo")
                .reason("cost_limit");
        case Stage::latency:
            return plain(ErrorCode::deadline_exceeded,
                         "every permitted target is over the latency limit",
                         "ogni destinazione permessa supera il limite di latenza")
                .reason("latency_limit");
        case Stage::health:
            return all_down(roster, moment, weighed, words);
        case Stage::other_asked:
        case Stage::admitted:
            break;
    }
    return Error(ErrorCode::unavailable,
                 "no target is configured; declare one in [[targets]], or a model for the engine")
        .italian(
            "nessuna destinazione è configurata; dichiararne una in [[targets]], o un modello "
            "per il motore");
}

bool covers(const domain::Caller& caller, const domain::TargetSpec& target,
            std::string_view adapter) noexcept {
    if (!caller.tiers.contains(target.tier)) return false;
    // Each of several adapters has to be covered; a name stands for all of its versions.
    const auto covered = [&](std::string_view version) {
        const std::string_view name = version.substr(0, version.find('@'));
        return std::any_of(caller.models.begin(), caller.models.end(), [&](std::string_view model) {
            if (!model.starts_with(target.id)) return false;
            model.remove_prefix(target.id.size());
            if (model.empty()) return true;
            const bool named = !adapter.empty() && model.front() == '/';
            model.remove_prefix(1);
            return named && (model == version || model == name);
        });
    };
    bool all = true;
    for (std::size_t at = 0; at <= adapter.size() && all && !caller.models.empty();) {
        const std::size_t end = std::min(adapter.find(',', at), adapter.size());
        const std::string_view share = adapter.substr(at, end - at);
        all = covered(share.substr(0, share.find('*')));
        at = end + 1;
    }
    return all;
}

Result<void> authorise(const domain::Caller& caller, const domain::TargetSpec& target,
                       const std::string& adapter) {
    if (!caller.tiers.contains(target.tier)) {
        return fail(Error(ErrorCode::denied,
                          fmt::format("key {} reaches {}; target {} is {}", caller.key_id,
                                      to_string(caller.tiers), target.id, to_string(target.tier)))
                        .reason("tier_not_in_scope")
                        .italian(fmt::format("la chiave {} raggiunge {}; la destinazione {} è {}",
                                             caller.key_id, to_string(caller.tiers), target.id,
                                             to_string(target.tier))));
    }
    if (covers(caller, target, adapter)) return {};
    const std::vector<std::string>& models = caller.models;
    return fail(Error(ErrorCode::denied,
                      fmt::format("key {} may use only {}", caller.key_id, fmt::join(models, ", ")))
                    .reason("model_not_in_scope")
                    .italian(fmt::format("la chiave {} può usare solo {}", caller.key_id,
                                         fmt::join(models, ", "))));
}

}  // namespace molly::router
