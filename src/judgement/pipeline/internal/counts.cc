#include "pipeline/internal/counts.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "pipeline/internal/record.h"

namespace molly::pipeline {
namespace {

constexpr std::array<std::string_view, 4> dialects = {"openai", "anthropic", "ollama", "molly"};
constexpr std::array<std::string_view, 12> denials = {
    "class_below_key",      "tier_not_permitted",        "residency_not_permitted",
    "residency_empty",      "no_target_permitted",       "no_tier_permitted",
    "model_not_in_scope",   "tier_not_in_scope",         "t3_not_permitted",
    "detection_incomplete", "modality_without_detector", "token_not_redactable"};
constexpr std::array<std::string_view, 7> closings = {
    "t3_not_permitted",    "private_not_permitted", "secret",
    "kept_from_t3",        "detection_incomplete",  "modality_without_detector",
    "token_not_redactable"};

template <std::size_t size>
std::string_view known(const std::array<std::string_view, size>& set,
                       std::string_view value) noexcept {
    return std::find(set.begin(), set.end(), value) == set.end() ? "other" : value;
}

double seconds(std::chrono::microseconds duration) noexcept {
    return static_cast<double>(duration.count()) / 1e6;
}

}  // namespace

Counts::Counts(Metrics& metrics)
    : metrics_(metrics),
      duration_(metrics.histogram("molly_request_seconds", "From arrival to the committed trace.")),
      first_token_(metrics.histogram("molly_first_token_seconds",
                                     "From arrival to the first piece of the answer.")),
      prompt_tokens_(
          metrics.counter("molly_tokens_total", "Tokens of all attempts.", "kind=\"prompt\"")),
      answer_tokens_(
          metrics.counter("molly_tokens_total", "Tokens of all attempts.", "kind=\"answer\"")) {}

void Counts::ended(const domain::Trace& trace, const Error* error) {
    const std::string_view tier = trace.target.empty() ? "none" : to_string(serving(trace).tier);
    metrics_
        .counter("molly_requests_total", "Requests that have ended.",
                 fmt::format("outcome=\"{}\",tier=\"{}\",dialect=\"{}\"", to_string(trace.outcome),
                             tier, known(dialects, trace.dialect)))
        .add();
    duration_.observe(seconds(trace.duration));
    if (trace.first_token.count() > 0) first_token_.observe(seconds(trace.first_token));
    for (const domain::Attempt& attempt : trace.attempts) {
        prompt_tokens_.add(attempt.usage.prompt_tokens);
        answer_tokens_.add(attempt.usage.answer_tokens);
        metrics_
            .counter("molly_attempts_total", "Attempts at targets.",
                     fmt::format("tier=\"{}\",result=\"{}\",cause=\"{}\"", to_string(attempt.tier),
                                 attempt.failed ? to_string(*attempt.failed) : "answered",
                                 to_string(attempt.cause)))
            .add();
        for (const auto& [kind, count] : attempt.redactions) {
            metrics_
                .counter("molly_redactions_total", "Spans replaced before they left for T3.",
                         fmt::format("kind=\"{}\"", to_string(kind)))
                .add(count);
        }
    }
    if (!trace.decision.t3_closed.empty()) {
        metrics_
            .counter("molly_t3_closed_total", "Requests that no T3 target was open to, and why.",
                     fmt::format("reason=\"{}\"", known(closings, trace.decision.t3_closed)))
            .add();
    }
    if (error == nullptr || error->code() != ErrorCode::denied) return;
    metrics_
        .counter("molly_denied_total", "Requests that policy refused.",
                 fmt::format("reason=\"{}\"", known(denials, error->reason())))
        .add();
}

}  // namespace molly::pipeline
