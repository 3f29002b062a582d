#pragma once
// What comes back: pieces while it is made, and the whole. Values.
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "domain/content.h"
#include "domain/request.h"

namespace molly::domain {

enum class FinishReason : std::uint8_t { stop, length, tool_calls, content_filter };
std::string_view to_string(FinishReason reason) noexcept;

/// Tokens of one answer. A target that reports none is counted by us.
struct Usage {
    enum class Source : std::uint8_t { none, engine, upstream, estimate };
    std::uint32_t prompt_tokens = 0;
    std::uint32_t cached_tokens = 0;  ///< part of prompt_tokens
    std::uint32_t answer_tokens = 0;
    std::uint32_t reasoning_tokens = 0;  ///< part of answer_tokens
    Source source = Source::none;

    bool operator==(const Usage&) const = default;
};
std::string_view to_string(Usage::Source source) noexcept;

/// What `usage` costs at `prices`.
Money cost_of(const Usage& usage, const Prices& prices) noexcept;

/// Log-probability (natural) of one produced token, with the likeliest alternatives.
struct TokenLogprob {
    std::string token;  ///< may be an incomplete code point
    float logprob = 0;
    std::vector<std::pair<std::string, float>> top;

    bool operator==(const TokenLogprob&) const = default;
};

/// A piece of a tool call. The first piece of an index carries id and name; arguments are appended.
struct ToolCallDelta {
    std::uint32_t index = 0;
    std::string id;
    std::string name;
    std::string arguments;

    bool operator==(const ToolCallDelta&) const = default;
};

/// One piece of an answer in the making. All text is valid UTF-8.
struct Delta {
    std::string text;
    std::string reasoning;
    std::vector<ToolCallDelta> tool_calls;
    std::vector<TokenLogprob> logprobs;
    std::optional<FinishReason> finish;
    std::string stop_sequence;   ///< of the request's, the one that ended the answer, where known
    std::optional<Usage> usage;  ///< totals so far; the last one counts
    std::string caveat;          ///< beside the end of an answer that may be poor: why
    std::string prefix;          ///< beside the end: as Response's
};

/// The whole answer of one target.
struct Response {
    std::string target;   ///< id of the target that answered
    std::string adapter;  ///< and its adapter, or empty
    std::string model;    ///< the model's name as the target reports it
    std::string model_hash;
    Content text;
    Content reasoning;
    std::vector<ToolCall> tool_calls;
    std::vector<TokenLogprob> logprobs;
    FinishReason finish = FinishReason::stop;
    std::string stop_sequence;  ///< as Delta's
    Usage usage;
    std::vector<std::vector<float>> embeddings;  ///< shape: [inputs, embed]
    std::string caveat;                          ///< why it may be poor, for `molly.caveat`
    /// What became of the beginning that was to be kept, for `molly.prefix`: `kept` (on disk),
    /// `saving`, or why it is not: `class_forbids`, `too_short`, `too_large`, `no_memory`, `busy`,
    /// `deterministic`, `off`.
    std::string prefix;
    std::chrono::microseconds first_token{0};  ///< since the request came; the pipeline measures
    std::chrono::microseconds duration{0};     ///< likewise, up to the last Delta
};

/// Builds a Response from its Deltas.
class ResponseBuilder {
public:
    void add(const Delta& delta);
    /// The answer so far. Call once.
    Response take();
    bool empty() const noexcept { return text_.empty() && reasoning_.empty() && calls_.empty(); }
    /// The text so far.
    const std::string& text() const noexcept { return text_; }

private:
    std::string text_;
    std::string reasoning_;
    struct Call {
        std::string id;
        std::string name;
        std::string arguments;
    };
    std::vector<Call> calls_;
    std::vector<TokenLogprob> logprobs_;
    FinishReason finish_ = FinishReason::stop;
    std::string stop_sequence_;
    Usage usage_;
};

}  // namespace molly::domain
