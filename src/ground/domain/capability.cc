#include "domain/capability.h"

#include <algorithm>

namespace molly::domain {
namespace {

constexpr std::array<std::string_view, task_types> task_names = {
    "chat",   "extract",  "classify",   "summarise", "translate", "code",
    "reason", "tool_use", "transcribe", "speak",     "draw",      "embed"};
constexpr std::array<std::string_view, fields_count> field_names = {
    "ai_ml",   "creative",       "security",  "finance",     "programming", "research",
    "arts",    "humanities",     "marketing", "engineering", "education",   "medicine",
    "science", "social_science", "business",  "other"};
constexpr std::array<std::string_view, bands_count> band_names = {"easy", "middling", "hard"};

template <class Enum, std::size_t size>
std::optional<Enum> named(const std::array<std::string_view, size>& names,
                          std::string_view text) noexcept {
    const auto found = std::find(names.begin(), names.end(), text);
    if (found == names.end()) return std::nullopt;
    return static_cast<Enum>(found - names.begin());
}

constexpr double easy_below = 0.35;
constexpr double hard_from = 0.65;

}  // namespace

std::string_view to_string(TaskType task) noexcept {
    return task_names[static_cast<std::size_t>(task)];
}

std::optional<TaskType> task_from(std::string_view text) noexcept {
    return named<TaskType>(task_names, text);
}

std::string_view to_string(Field field) noexcept {
    return field_names[static_cast<std::size_t>(field)];
}

std::optional<Field> field_from(std::string_view text) noexcept {
    return named<Field>(field_names, text);
}

std::string_view to_string(Band band) noexcept {
    return band_names[static_cast<std::size_t>(band)];
}

std::optional<Band> band_from(std::string_view text) noexcept {
    return named<Band>(band_names, text);
}

Band band_of(double difficulty) noexcept {
    if (difficulty < easy_below) return Band::easy;
    return difficulty < hard_from ? Band::middling : Band::hard;
}

Field CapabilityProfile::field() const noexcept {
    const auto best = std::max_element(fields.begin(), fields.end());
    return *best > 0 ? static_cast<Field>(best - fields.begin()) : Field::other;
}

}  // namespace molly::domain
