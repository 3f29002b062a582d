#pragma once
// What two Mollys say to each other when one drafts what the other answers (POST
// /molly/v1/verify). Pure; safe from any thread.
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace molly::dialects {

/// Header of a request whose answer is drafted elsewhere: the name of its session.
inline constexpr std::string_view drafts_header = "x-molly-drafts";

/// Opens a session, or sends a block to one.
struct DraftCall {
    std::string session;     ///< empty: opens one
    std::string vocabulary;  ///< to open one
    bool waits = false;      ///< likewise: the answer waits for the first block
    std::uint32_t from = 0;  ///< place of the first token in the answer
    std::vector<std::int32_t> tokens;
    bool alone = false;  ///< the answer goes on without waiting
};
/// Errors: invalid_request with `param`, too_large.
Result<DraftCall> decode_draft_call(std::string_view body, const JsonLimits& limits);
std::string encode_draft_call(const DraftCall& call);

/// A session that was opened.
struct DraftSession {
    std::string id;
    std::uint32_t draft_tokens_max = 0;     ///< of one block
    std::chrono::milliseconds patience{0};  ///< how long the answer waits for a block
};
/// Errors: upstream_failed.
Result<DraftSession> decode_draft_session(std::string_view body);
std::string encode_draft_session(const DraftSession& session);

/// What became of a block.
struct DraftVerdict {
    std::uint32_t accepted = 0;  ///< tokens of it that came
    /// Of the answer, from the block's place on: the accepted ones and what came behind them.
    std::vector<std::int32_t> tokens;
    bool ended = false;   ///< the answer is complete
    double check_ms = 0;  ///< from the block's arrival
    double step_ms = 0;   ///< of a token without drafts there; 0: not known yet
};
/// Errors: upstream_failed.
Result<DraftVerdict> decode_draft_verdict(std::string_view body);
std::string encode_draft_verdict(const DraftVerdict& verdict);

}  // namespace molly::dialects
