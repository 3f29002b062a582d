#include <algorithm>
#include <cstdint>
#include <limits>

#include "annotate/annotate.h"

namespace molly::annotate {
namespace {

// Measured on nothing: vocabularies of 32,000 and more take 3 to 5 bytes of English or Italian a
// token, so 3.5 errs towards too many. The engine counts exactly before it decodes.
constexpr std::uint64_t bytes_per_two_tokens = 7;
constexpr std::uint64_t turn_tokens = 4;     // what a chat template wraps around one turn
constexpr std::uint64_t image_tokens = 800;  // a picture, whatever its bytes

std::uint64_t tokens_of(std::uint64_t bytes) noexcept {
    return (2 * bytes + bytes_per_two_tokens - 1) / bytes_per_two_tokens;
}

std::uint64_t tokens_of(const domain::Message& message) noexcept {
    std::uint64_t bytes = message.name.size() + message.reasoning.text().size();
    std::uint64_t tokens = turn_tokens;
    for (const domain::Part& part : message.parts) {
        const bool text = part.kind == domain::Part::Kind::text;
        if (text) bytes += part.text.text().size();
        if (part.kind == domain::Part::Kind::file) bytes += part.text.text().size() * 3 / 4;
        if (!text && part.kind != domain::Part::Kind::file) tokens += image_tokens;
    }
    for (const domain::ToolCall& call : message.tool_calls)
        bytes += call.name.size() + call.arguments.text().size();
    return tokens + tokens_of(bytes);
}

std::uint32_t narrow(std::uint64_t tokens) noexcept {
    return static_cast<std::uint32_t>(
        std::min<std::uint64_t>(tokens, std::numeric_limits<std::uint32_t>::max()));
}

}  // namespace

std::uint32_t estimate_prompt_tokens(const domain::Request& request) noexcept {
    std::uint64_t tokens = 0;
    for (const domain::Message& message : request.messages)
        tokens += tokens_of(message);
    for (const domain::Content& input : request.inputs)
        tokens += tokens_of(input.text().size());
    std::uint64_t bytes = request.prompt.text().size() + request.suffix.text().size() +
                          request.format.schema.text().size();
    for (const domain::Tool& tool : request.tools) {
        bytes += tool.name.size() + tool.description.text().size() + tool.parameters.text().size();
    }
    return narrow(std::max<std::uint64_t>(1, tokens + tokens_of(bytes)));
}

std::uint32_t estimate_context_tokens(const domain::Request& request) noexcept {
    if (request.operation != domain::Operation::embed) return estimate_prompt_tokens(request);
    std::size_t longest = 0;
    for (const domain::Content& input : request.inputs)
        longest = std::max(longest, input.text().size());
    return narrow(std::max<std::uint64_t>(1, tokens_of(longest)));
}

}  // namespace molly::annotate
