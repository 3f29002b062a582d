#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "domain/finding.h"
#include "domain/response.h"
#include "domain/target.h"
#include "domain/trace.h"

namespace molly::domain {
namespace {

template <class Enum, std::size_t size>
std::optional<Enum> find(const std::array<std::pair<std::string_view, Enum>, size>& names,
                         std::string_view text) noexcept {
    for (const auto& [name, value] : names) {
        if (name == text) return value;
    }
    return std::nullopt;
}

template <class Enum, std::size_t size>
std::string_view find(const std::array<std::pair<std::string_view, Enum>, size>& names,
                      Enum value) noexcept {
    for (const auto& [name, known] : names) {
        if (known == value) return name;
    }
    return "unknown";
}

constexpr std::array<std::pair<std::string_view, Tier>, 4> tier_names = {
    {{"T0", Tier::t0}, {"T1", Tier::t1}, {"T2", Tier::t2}, {"T3", Tier::t3}}};
constexpr std::array<std::pair<std::string_view, Sensitivity>, 4> sensitivity_names = {
    {{"public", Sensitivity::public_},
     {"standard", Sensitivity::standard},
     {"private", Sensitivity::private_},
     {"secret", Sensitivity::secret}}};
constexpr std::array<std::pair<std::string_view, FindingKind>, finding_kinds> finding_names = {
    {{"email", FindingKind::email},
     {"phone", FindingKind::phone},
     {"iban", FindingKind::iban},
     {"card", FindingKind::card},
     {"codice_fiscale", FindingKind::codice_fiscale},
     {"partita_iva", FindingKind::partita_iva},
     {"plate", FindingKind::plate},
     {"id_card", FindingKind::id_card},
     {"passport", FindingKind::passport},
     {"driving_licence", FindingKind::driving_licence},
     {"health_card", FindingKind::health_card},
     {"ssn", FindingKind::ssn},
     {"ip_address", FindingKind::ip_address},
     {"mac_address", FindingKind::mac_address},
     {"url_credentials", FindingKind::url_credentials},
     {"birth_date", FindingKind::birth_date},
     {"address", FindingKind::address},
     {"location", FindingKind::location},
     {"person", FindingKind::person},
     {"organisation", FindingKind::organisation},
     {"api_key", FindingKind::api_key},
     {"jwt", FindingKind::jwt},
     {"private_key", FindingKind::private_key},
     {"declared", FindingKind::declared}}};
constexpr std::array<std::pair<std::string_view, Mode>, 4> mode_names = {
    {{"balanced", Mode::balanced},
     {"quality", Mode::quality},
     {"fast", Mode::fast},
     {"cheap", Mode::cheap}}};
constexpr std::array<std::pair<std::string_view, Dialect>, 3> dialect_names = {
    {{"openai", Dialect::openai}, {"anthropic", Dialect::anthropic}, {"ollama", Dialect::ollama}}};
constexpr std::array<std::pair<std::string_view, Operation>, 3> operation_names = {
    {{"chat", Operation::chat}, {"complete", Operation::complete}, {"embed", Operation::embed}}};
constexpr std::array<std::pair<std::string_view, Role>, 4> role_names = {
    {{"system", Role::system},
     {"user", Role::user},
     {"assistant", Role::assistant},
     {"tool", Role::tool}}};
constexpr std::array<std::pair<std::string_view, FinishReason>, 4> finish_names = {
    {{"stop", FinishReason::stop},
     {"length", FinishReason::length},
     {"tool_calls", FinishReason::tool_calls},
     {"content_filter", FinishReason::content_filter}}};
constexpr std::array<std::pair<std::string_view, Usage::Source>, 4> source_names = {
    {{"none", Usage::Source::none},
     {"engine", Usage::Source::engine},
     {"upstream", Usage::Source::upstream},
     {"estimate", Usage::Source::estimate}}};
constexpr std::array<std::pair<std::string_view, Outcome>, 5> outcome_names = {
    {{"answered", Outcome::answered},
     {"refused", Outcome::refused},
     {"failed", Outcome::failed},
     {"cancelled", Outcome::cancelled},
     {"truncated", Outcome::truncated}}};
constexpr std::array<std::pair<std::string_view, Cause>, 5> cause_names = {
    {{"step", Cause::step},
     {"mixture", Cause::mixture},
     {"sample", Cause::sample},
     {"verification", Cause::verification},
     {"hedge", Cause::hedge}}};
constexpr std::array<std::pair<std::string_view, ConfidenceSource>, 4> confidence_names = {
    {{"logprobs", ConfidenceSource::logprobs},
     {"samples", ConfidenceSource::samples},
     {"verifier", ConfidenceSource::verifier},
     {"stated", ConfidenceSource::stated}}};

constexpr std::array<std::pair<std::string_view, Drafts>, 3> drafts_names = {
    {{"off", Drafts::off}, {"measured", Drafts::measured}, {"always", Drafts::always}}};

// Member states of the European Union, ISO 3166-1 alpha-2.
constexpr std::array<std::string_view, 27> union_members = {
    "AT", "BE", "BG", "CY", "CZ", "DE", "DK", "EE", "ES", "FI", "FR", "GR", "HR", "HU",
    "IE", "IT", "LT", "LU", "LV", "MT", "NL", "PL", "PT", "RO", "SE", "SI", "SK"};

bool in_union(std::string_view place) noexcept {
    return std::find(union_members.begin(), union_members.end(), place) != union_members.end();
}

bool covers(const std::set<std::string, std::less<>>& places, std::string_view place) {
    return places.contains(place) || (in_union(place) && places.contains("EU"));
}

}  // namespace

std::string_view to_string(Tier tier) noexcept {
    return find(tier_names, tier);
}
std::optional<Tier> tier_from(std::string_view text) noexcept {
    return find(tier_names, text);
}
std::string_view to_string(Sensitivity sensitivity) noexcept {
    return find(sensitivity_names, sensitivity);
}
std::optional<Sensitivity> sensitivity_from(std::string_view text) noexcept {
    return find(sensitivity_names, text);
}
std::string_view to_string(FindingKind kind) noexcept {
    return find(finding_names, kind);
}

std::optional<FindingKind> finding_kind_from(std::string_view text) noexcept {
    return find(finding_names, text);
}

std::string_view to_string(Mode mode) noexcept {
    return find(mode_names, mode);
}
std::optional<Mode> mode_from(std::string_view text) noexcept {
    return find(mode_names, text);
}
std::optional<KeepPrefix> keep_prefix_from(std::string_view text) noexcept {
    if (text == "system") return KeepPrefix::system;
    if (text == "prompt") return KeepPrefix::prompt;
    return std::nullopt;
}
std::string_view to_string(Dialect dialect) noexcept {
    return find(dialect_names, dialect);
}
std::optional<Dialect> dialect_from(std::string_view text) noexcept {
    return find(dialect_names, text);
}
std::string_view to_string(Operation operation) noexcept {
    return find(operation_names, operation);
}
std::string_view to_string(Role role) noexcept {
    return find(role_names, role);
}
std::string_view to_string(FinishReason reason) noexcept {
    return find(finish_names, reason);
}
std::string_view to_string(Usage::Source source) noexcept {
    return find(source_names, source);
}
std::string_view to_string(Outcome outcome) noexcept {
    return find(outcome_names, outcome);
}

std::string_view to_string(Cause cause) noexcept {
    return find(cause_names, cause);
}
std::string_view to_string(ConfidenceSource source) noexcept {
    return find(confidence_names, source);
}
std::optional<ConfidenceSource> confidence_source_from(std::string_view text) noexcept {
    return find(confidence_names, text);
}

std::optional<Drafts> drafts_from(std::string_view text) noexcept {
    return find(drafts_names, text);
}

std::string to_string(TierSet tiers) {
    std::string text;
    for (const Tier tier : all_tiers) {
        if (!tiers.contains(tier)) continue;
        if (!text.empty()) text += ' ';
        text += to_string(tier);
    }
    return text.empty() ? "none" : text;
}

TierSet tiers_of(Sensitivity sensitivity) noexcept {
    switch (sensitivity) {
        case Sensitivity::secret:
            return {Tier::t0};
        case Sensitivity::private_:
            return {Tier::t0, Tier::t1};
        case Sensitivity::standard:
        case Sensitivity::public_:
            return {Tier::t0, Tier::t1, Tier::t2};
    }
    return {Tier::t0};
}

bool Residency::allows(const std::set<std::string, std::less<>>& where) const {
    if (!constrained_) return true;
    return std::any_of(where.begin(), where.end(),
                       [this](const std::string& place) { return covers(places_, place); });
}

Residency Residency::intersect(const Residency& other) const {
    if (!constrained_) return other;
    if (!other.constrained_) return *this;
    std::set<std::string, std::less<>> both;
    for (const std::string& place : places_) {
        if (covers(other.places_, place)) both.insert(place);
    }
    for (const std::string& place : other.places_) {
        if (covers(places_, place)) both.insert(place);
    }
    return Residency(std::move(both));
}

std::string to_string(const Residency& residency) {
    if (!residency.constrained()) return "everywhere";
    if (residency.nowhere()) return "nowhere";
    return fmt::format("{}", fmt::join(residency.places(), " "));
}

Label join(const Label& a, const Label& b) {
    Label both;
    both.sensitivity = std::max(a.sensitivity, b.sensitivity);
    both.residency = a.residency.intersect(b.residency);
    both.origins = a.origins;
    both.origins.insert(b.origins.begin(), b.origins.end());
    return both;
}

std::string to_string(Money money) {
    const std::int64_t unit = 1'000'000'000;
    const char* sign = money.nano < 0 ? "-" : "";
    const std::int64_t whole = std::abs(money.nano / unit);
    std::string text = fmt::format("{}{}.{:09}", sign, whole, std::abs(money.nano % unit));
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    return text;
}

Money money_from(double units) noexcept {
    return {static_cast<std::int64_t>(std::llround(units * 1e9))};
}

Money cost_of(const Usage& usage, const Prices& prices) noexcept {
    const std::int64_t cached = std::min(usage.cached_tokens, usage.prompt_tokens);
    const std::int64_t full = std::int64_t{usage.prompt_tokens} - cached;
    return {full * prices.per_input_token.nano + cached * prices.per_cached_token.nano +
            std::int64_t{usage.answer_tokens} * prices.per_answer_token.nano};
}

Message text_message(Role role, std::string text) {
    Message message;
    message.role = role;
    message.parts.push_back({.kind = Part::Kind::text,
                             .text = Content(std::move(text)),
                             .media_type = {},
                             .is_url = false});
    return message;
}

std::string text_of(const Message& message) {
    std::string text;
    for (const Part& part : message.parts) {
        if (part.kind != Part::Kind::text) continue;
        if (!text.empty()) text += '\n';
        text += part.text.text();
    }
    return text;
}

std::string to_string(const Endpoint& endpoint) {
    const bool bracket = endpoint.host.find(':') != std::string::npos;
    return fmt::format("{}://{}{}{}:{}{}", endpoint.tls ? "https" : "http", bracket ? "[" : "",
                       endpoint.host, bracket ? "]" : "", endpoint.port, endpoint.path);
}

std::set<std::string, std::less<>> TargetSpec::places() const {
    std::set<std::string, std::less<>> all = boundaries;
    if (!jurisdiction.empty()) all.insert(jurisdiction);
    return all;
}

void ResponseBuilder::add(const Delta& delta) {
    text_ += delta.text;
    reasoning_ += delta.reasoning;
    for (const ToolCallDelta& piece : delta.tool_calls) {
        if (piece.index >= calls_.size()) calls_.resize(std::size_t{piece.index} + 1);
        Call& call = calls_[piece.index];
        if (!piece.id.empty()) call.id = piece.id;
        if (!piece.name.empty()) call.name = piece.name;
        call.arguments += piece.arguments;
    }
    logprobs_.insert(logprobs_.end(), delta.logprobs.begin(), delta.logprobs.end());
    if (delta.finish) finish_ = *delta.finish;
    if (!delta.stop_sequence.empty()) stop_sequence_ = delta.stop_sequence;
    if (delta.usage) usage_ = *delta.usage;
}

Response ResponseBuilder::take() {
    Response response;
    response.text = Content(std::move(text_));
    response.reasoning = Content(std::move(reasoning_));
    for (Call& call : calls_) {
        response.tool_calls.push_back({.id = std::move(call.id),
                                       .name = std::move(call.name),
                                       .arguments = Content(std::move(call.arguments))});
    }
    response.logprobs = std::move(logprobs_);
    response.finish = finish_;
    response.stop_sequence = std::move(stop_sequence_);
    response.usage = usage_;
    return response;
}

}  // namespace molly::domain
