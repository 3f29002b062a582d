#pragma once
// A declared place that can answer. Values, read from the configuration once.
#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "domain/capability.h"
#include "domain/money.h"
#include "domain/tier.h"

namespace molly::domain {

/// Which foreign API a remote target speaks.
enum class Dialect : std::uint8_t { openai, anthropic, ollama };
std::string_view to_string(Dialect dialect) noexcept;
std::optional<Dialect> dialect_from(std::string_view text) noexcept;

/// Where the socket goes, and how the peer proves itself.
struct Endpoint {
    bool tls = false;
    std::string host;
    std::uint16_t port = 0;
    std::string path;  ///< base path without a trailing slash, such as `/v1`
    std::string pin;   ///< SHA-256 of the peer's public key (RFC 7469 form, base64); empty: no pin
    std::string ca_file;  ///< PEM of the accepted authorities; empty: the system's

    bool operator==(const Endpoint&) const = default;
};

/// "https://host:port/path".
std::string to_string(const Endpoint& endpoint);

struct Capabilities {
    bool chat = true;
    bool embed = false;
    bool tools = false;
    bool json_schema = false;
    bool logprobs = false;
    bool images = false;
    std::uint32_t context_tokens_max = 8192;
};

/// Where confidence in an answer comes from.
enum class ConfidenceSource : std::uint8_t {
    logprobs,  ///< the probabilities of its tokens
    samples,   ///< whether more answers of the same place agree with it
    verifier,  ///< what another target says that it is worth
    stated,    ///< what the same place says that it is worth
};
std::string_view to_string(ConfidenceSource source) noexcept;
std::optional<ConfidenceSource> confidence_source_from(std::string_view text) noexcept;

/// Whether this device drafts what another Molly answers.
enum class Drafts : std::uint8_t {
    off,
    measured,  ///< where it was measured to be faster
    always,    ///< wherever it can: for tests and measurements
};
std::optional<Drafts> drafts_from(std::string_view text) noexcept;

/// How confidence is measured, where an answer may be rejected.
struct ConfidenceMeasure {
    ConfidenceSource source = ConfidenceSource::logprobs;
    std::uint32_t samples = 3;  ///< answers in all
    std::string verifier;       ///< a target, or one and its adapter behind a slash

    bool operator==(const ConfidenceMeasure&) const = default;
};

/// What a target, or one adapter of it, is for, and when it must not be asked: escalation is a rule
/// that somebody declared, never left to the model.
struct Specialist {
    std::string adapter;  ///< empty: the bare model
    Field field = Field::other;
    double quality = 0.7;    ///< prior of its estimate in that field
    double threshold = 0.6;  ///< an estimate from here on is tried before anything else
    std::uint32_t prompt_tokens_max = 0;  ///< longer requests are not for it; 0: no limit
    double difficulty_max = 1;            ///< nor harder ones
    double confidence_min = 0;  ///< a less confident answer goes to the next tier; 0: none does
    ConfidenceMeasure measure = {};  ///< with confidence_min, instead of the target's

    bool operator==(const Specialist&) const = default;
};

struct TargetSpec {
    std::string id;      ///< the name in requests and receipts
    bool local = false;  ///< the engine in this process
    Tier tier = Tier::t3;
    std::string jurisdiction;                       ///< `IT`; empty: undeclared
    std::set<std::string, std::less<>> boundaries;  ///< `home-lan`, a node's name
    std::string controller;                         ///< who runs it
    Dialect dialect = Dialect::openai;
    Endpoint endpoint;
    std::string model;         ///< the upstream's own model name
    std::string key_file;      ///< file that holds the upstream's API key; empty: none
    std::string key_variable;  ///< or the environment variable that holds it
    Capabilities capabilities;
    Prices prices;
    double quality = 0.5;                        ///< declared, in [0, 1]
    std::chrono::milliseconds first_token{500};  ///< declared, until measured
    double tokens_per_second = 50;               ///< declared, until measured
    double confidence_min = 0;  ///< a less confident answer goes to the next tier; 0: none does
    ConfidenceMeasure measure;
    std::vector<Specialist> specialists;
    Drafts drafts = Drafts::off;
    std::chrono::milliseconds connect_timeout{2000};
    std::chrono::milliseconds idle_timeout{60000};

    /// Jurisdiction and boundaries as one set, for Residency::allows.
    std::set<std::string, std::less<>> places() const;
};

}  // namespace molly::domain
