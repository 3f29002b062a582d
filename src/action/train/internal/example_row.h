#pragma once
// One line of a training file as a prompt and the answers to learn. Pure.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "domain/label.h"
#include "train/examples.h"

namespace molly::train {

/// What follows a prompt: turns of the conversation, or text that continues a text.
struct Answer {
    std::vector<Turn> turns;  ///< of a conversation; the last one is the assistant's
    std::string text;         ///< of a completion

    bool operator==(const Answer&) const = default;
};

struct ExampleRow {
    std::vector<Turn> turns;      ///< the prompt of a conversation
    std::string text;             ///< the prompt of a completion, when there are no turns
    std::vector<Answer> answers;  ///< one, or the better and the worse one
    domain::Sensitivity sensitivity = domain::Sensitivity::private_;
    std::string license;
};

inline constexpr std::size_t example_turns_max = 256;
inline constexpr std::size_t example_bytes_max = 1U << 20U;  ///< of one line

/// Reads one line. Errors: invalid_request, with what is wrong and no content.
Result<ExampleRow> parse_example(std::string_view line, RowKind kind);

/// A right row of the kind, for messages.
std::string_view right_row(RowKind kind) noexcept;

}  // namespace molly::train
