#pragma once
// What a request needs, and what it is about (SPEC section 3). Values.
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace molly::domain {

/// What a request asks for.
enum class TaskType : std::uint8_t {
    chat,
    extract,
    classify,
    summarise,
    translate,
    code,
    reason,
    tool_use,
    transcribe,
    speak,
    draw,
    embed
};
inline constexpr std::size_t task_types = 12;
std::string_view to_string(TaskType task) noexcept;
std::optional<TaskType> task_from(std::string_view text) noexcept;

/// The macro-domains of knowledge.
enum class Field : std::uint8_t {
    ai_ml,
    creative,
    security,
    finance,
    programming,
    research,
    arts,
    humanities,
    marketing,
    engineering,
    education,
    medicine,
    science,
    social_science,
    business,
    other
};
inline constexpr std::size_t fields_count = 16;
std::string_view to_string(Field field) noexcept;
std::optional<Field> field_from(std::string_view text) noexcept;

/// Posterior over the macro-domains; it sums to one.
using FieldShares = std::array<float, fields_count>;

/// How hard a request is, for estimates: below 0.35, below 0.65, above.
enum class Band : std::uint8_t { easy, middling, hard };
inline constexpr std::size_t bands_count = 3;
std::string_view to_string(Band band) noexcept;
std::optional<Band> band_from(std::string_view text) noexcept;
Band band_of(double difficulty) noexcept;

/// What a request needs.
struct CapabilityProfile {
    std::uint32_t prompt_tokens = 0;   ///< estimate, over all that will be paid for
    std::uint32_t context_tokens = 0;  ///< estimate, of the longest single sequence
    std::uint32_t answer_tokens = 0;   ///< estimate, or the caller's maximum
    bool tools = false;
    bool json_schema = false;
    bool images = false;
    bool logprobs = false;
    bool classified = false;         ///< the rest was read from the text
    TaskType task = TaskType::chat;  ///< the likeliest
    float task_share = 0;            ///< and its probability
    FieldShares fields = {};         ///< all zero: unknown
    float difficulty = 0.5F;         ///< in [0, 1]
    float out_of_scope = 0;          ///< probability that none of the fields fits

    /// The likeliest field; `other` when unknown.
    Field field() const noexcept;
    Band band() const noexcept { return band_of(difficulty); }
};

}  // namespace molly::domain
