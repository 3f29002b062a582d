#include <utility>

#include <fmt/format.h>

#include "base/coroutine.h"
#include "pipeline/internal/recognition.h"
#include "pipeline/pipeline.h"
#include "seal/seal.h"

namespace molly::pipeline {
namespace {

using domain::Declassification;

constexpr std::size_t reason_bytes_max = 500;

Error not_in_scope(std::string_view english, std::string_view italian) {
    return Error(ErrorCode::denied, std::string(english))
        .reason("declassify_not_in_scope")
        .italian(std::string(italian));
}

Result<void> check_scope(const members::Scope& scope, const Declassification& act,
                         std::string_view conversation) {
    if (!scope.declassify) {
        return fail(not_in_scope(
            "this key may not lower labels; make one with `molly keys create --declassify CLASS`",
            "questa chiave non può abbassare le etichette; crearne una con `molly keys create "
            "--declassify CLASSE`"));
    }
    if (act.to < *scope.declassify) {
        return fail(
            not_in_scope(fmt::format("this key may lower labels to {} at the lowest",
                                     to_string(*scope.declassify)),
                         fmt::format("questa chiave può abbassare le etichette al minimo a {}",
                                     to_string(*scope.declassify))));
    }
    const bool own = !scope.member.empty() && conversation.starts_with(scope.member + "/");
    if (scope.admin || own) return {};
    return fail(
        not_in_scope("only an admin key may lower the label of another member's "
                     "conversation",
                     "solo una chiave di amministrazione può abbassare l'etichetta della "
                     "conversazione di un altro membro"));
}

Error bad_reason(std::string_view english, std::string_view italian) {
    return Error(ErrorCode::invalid_request, std::string(english))
        .reason("declassify_reason")
        .param("reason")
        .italian(std::string(italian));
}

/// A reason is kept in a receipt for as long as there are receipts, so it must tell of nobody.
Result<void> check_reason(const annotate::Annotator& annotator, const Declassification& act) {
    const auto blank = act.reason.find_first_not_of(" \t\r\n") == std::string::npos;
    if (blank || act.reason.size() > reason_bytes_max) {
        return fail(bad_reason(fmt::format("say why, in 1 to {} bytes", reason_bytes_max),
                               fmt::format("dire perché, in 1-{} byte", reason_bytes_max)));
    }
    domain::Request request;
    request.messages.push_back(domain::text_message(domain::Role::user, act.reason));
    // Of the lowest class, so that everything is looked for that could raise one.
    request.caller.lowest_class = domain::Sensitivity::public_;
    request.extensions.sensitivity = domain::Sensitivity::public_;
    TRY(const domain::AnnotatedRequest searched,
        annotator.annotate(std::move(request), std::nullopt));
    for (const auto& findings : searched.findings) {
        if (findings.empty()) continue;
        return fail(
            bad_reason("the reason holds an identifier, and receipts are kept; say it "
                       "without names and numbers",
                       "il motivo contiene un identificativo, e le ricevute restano; dirlo "
                       "senza nomi e numeri"));
    }
    return {};
}

}  // namespace

Task<Result<domain::Trace>> Pipeline::declassify(Declassification act, std::string conversation,
                                                 const members::Key& by) {
    CO_TRY_DO(check_scope(by.scope, act, conversation));
    CO_TRY_DO(check_reason(*rules_.load()->annotator, act));
    const auto label = parts_.store.conversation_label(conversation);
    if (!label) {
        co_return fail(Error(ErrorCode::not_found,
                             "no such conversation; `molly traces show ID` gives a trace's")
                           .param("conversation")
                           .italian("non c'è questa conversazione; `molly traces show ID` dà "
                                    "quella di una traccia"));
    }
    if (act.to >= label->sensitivity) {
        co_return fail(
            Error(ErrorCode::conflict,
                  fmt::format("the conversation is {} already", to_string(label->sensitivity)))
                .italian(fmt::format("la conversazione è già {}", to_string(label->sensitivity))));
    }
    act.from = label->sensitivity;
    domain::Trace trace;
    trace.time = parts_.clock.wall();
    trace.id = "act_" + seal::ordered_token(trace.time);
    trace.dialect = "molly";
    trace.member = by.scope.member;
    trace.key_id = by.id;
    trace.app = by.scope.app;
    trace.conversation = std::move(conversation);
    trace.label = *label;
    trace.signals.push_back({"key:" + by.id, act.to, 1});
    trace.declassified = true;
    trace.decision.rule = "declassify";
    trace.decision.residency = label->residency;
    trace.lowered = std::move(act);
    domain::Trace kept = trace;
    CO_TRY_DO(co_await parts_.store.append(std::move(kept)));
    lowered_->add(trace.conversation);
    co_return trace;
}

}  // namespace molly::pipeline
