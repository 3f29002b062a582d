#pragma once
// What is known of one version of one LoRA adapter: which base it fits, what it may be used for,
// how it was made and measured. Values; safe from any thread.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "domain/label.h"

namespace molly::adapters {

/// The checkpoint that an adapter was made for. It runs on no other.
struct Base {
    std::string name;            ///< as people call it
    std::string hash;            ///< SHA-256 of the GGUF file, hex
    std::string tokenizer_hash;  ///< SHA-256 of the file's `tokenizer.` values, hex
    std::string architecture;
    std::string quantization;

    bool operator==(const Base&) const = default;
};

/// How an adapter was made. Hashes and counts, never content.
struct Training {
    std::string method;         ///< `lora`, `peft`; empty: unknown
    std::string tool;           ///< program and version
    std::string finished;       ///< RFC 3339, UTC
    std::string examples_hash;  ///< SHA-256 of the examples, hex
    std::uint64_t examples = 0;
    std::uint64_t tokens = 0;
    std::uint64_t steps = 0;
    std::uint64_t seed = 0;
    std::map<std::string, std::string> details;  ///< learning rate, schedule, parent version, ...

    bool operator==(const Training&) const = default;
};

/// One measured number, with the base's beside it.
struct Evaluation {
    std::string set;     ///< what was asked
    std::string metric;  ///< `loss`, `exact_match`
    double base = 0;     ///< the base without the adapter
    double adapter = 0;
    std::uint64_t examples = 0;

    bool operator==(const Evaluation&) const = default;
};

/// What a typed specialist is asked and answers with, for callers who say neither.
struct Component {
    std::string instructions;  ///< system text that it was trained with; empty: none
    std::string schema;        ///< JSON Schema of its answers, as compact JSON; empty: free text

    bool empty() const noexcept { return instructions.empty() && schema.empty(); }
    bool operator==(const Component&) const = default;
};

/// By whom the manifest, and through its hash the weights, are signed (Ed25519).
struct Signature {
    std::string public_key;  ///< base64; empty: not signed
    std::string value;       ///< base64

    bool operator==(const Signature&) const = default;
};

struct Manifest {
    std::string name;     ///< letters, digits, `.`, `_`, `-`
    std::string version;  ///< semantic version, `1.0.0`
    std::string domain;   ///< what it is good at, `law`; may be empty
    Base base;
    std::uint32_t rank = 0;            ///< the largest of its modules
    float alpha = 0;                   ///< 0: scale 1
    std::vector<std::string> modules;  ///< `attn_q`, `ffn_down`, sorted
    std::uint32_t tensors = 0;         ///< weights of the base that it changes
    std::string hash;                  ///< SHA-256 of the GGUF LoRA file, hex
    std::uint64_t bytes = 0;
    domain::Label label;  ///< of what it was trained on
    Component component;
    Training training;
    std::vector<Evaluation> evaluation;
    Signature signature;

    /// `name@version`.
    std::string id() const { return name + "@" + version; }
    bool operator==(const Manifest&) const = default;
};

/// Compact JSON; without the signature it is what gets signed.
std::string to_text(const Manifest& manifest, bool with_signature = true);
/// Errors: corrupt (no manifest), unsupported (of a newer Molly).
Result<Manifest> manifest_from(std::string_view text);

/// Semantic versions, `1.10.0` above `1.9.0` and above `1.10.0-rc.1` (semver.org 2.0.0, 11).
/// Negative: a is older. Versions that are none sort by their text, below all others.
int compare_versions(std::string_view a, std::string_view b);
/// Errors: invalid_request, saying what a version may be.
Result<void> check_version(std::string_view version);

/// `law@1.0.0` in two; without a version the second is empty.
std::pair<std::string, std::string> split_id(std::string_view id);

}  // namespace molly::adapters
