#include "gateway/verify_face.h"

#include <utility>

#include "dialects/drafts.h"
#include "engine/cooperation.h"
#include "seal/seal.h"

namespace molly::gateway {
namespace {

Result<std::string> open_session(const Exchange& exchange, dialects::DraftCall call) {
    engine::VerificationTerms terms;
    terms.id = "ver_" + seal::random_token(24);
    terms.owner = owner_of(exchange.key);
    terms.vocabulary = std::move(call.vocabulary);
    terms.waits = call.waits;
    dialects::DraftSession session;
    session.id = terms.id;
    session.draft_tokens_max = engine::draft_block_tokens_max;
    session.patience = terms.patience;
    TRY(const auto opened, exchange.parts.engine->verify(std::move(terms)));
    return dialects::encode_draft_session(session);
}

Task<Result<std::string>> check_block(const Exchange& exchange, dialects::DraftCall call) {
    const auto session = exchange.parts.engine->verification(call.session, owner_of(exchange.key));
    if (!session) {
        co_return fail(
            Error(ErrorCode::not_found,
                  "this key has no such session; open one by sending the vocabulary without a "
                  "session, then send the request with its name")
                .param("session")
                .italian("questa chiave non ha questa sessione; aprirne una inviando il "
                         "vocabolario senza sessione, poi la richiesta con il suo nome"));
    }
    engine::DraftBlock block;
    block.from = call.from;
    block.tokens = std::move(call.tokens);
    block.alone = call.alone;
    CO_TRY(engine::Checked checked, co_await session->check(std::move(block)));
    dialects::DraftVerdict verdict;
    verdict.accepted = checked.accepted;
    verdict.tokens = std::move(checked.tokens);
    verdict.ended = checked.ended;
    verdict.check_ms = checked.check_ms;
    verdict.step_ms = checked.step_ms;
    co_return dialects::encode_draft_verdict(verdict);
}

Task<Result<std::string>> answer(const Exchange& exchange) {
    if (exchange.parts.engine == nullptr) {
        co_return fail(Error(ErrorCode::unsupported,
                             "no model runs on this device, so nothing is checked here; ask "
                             "without drafts")
                           .italian("su questo dispositivo non c'è un modello, quindi qui nulla si "
                                    "verifica; chiedere senza bozze"));
    }
    CO_TRY(dialects::DraftCall call,
           dialects::decode_draft_call(exchange.request.body, exchange.options.json));
    if (call.session.empty()) co_return open_session(exchange, std::move(call));
    co_return co_await check_block(exchange, std::move(call));
}

}  // namespace

Task<void> verify(Exchange& exchange) {
    auto body = co_await answer(exchange);
    if (body) {
        co_await exchange.send_json(*std::move(body));
    } else {
        co_await exchange.send_error(body.error());
    }
}

}  // namespace molly::gateway
