#include "engine/internal/answer_text.h"

#include <algorithm>
#include <utility>

namespace molly::engine {
namespace {

/// Length of the longest end of `text` that is a proper beginning of `stop`.
std::size_t overlap(std::string_view text, std::string_view stop) {
    for (std::size_t length = std::min(text.size(), stop.size() - 1); length > 0; --length) {
        if (text.substr(text.size() - length) == stop.substr(0, length)) return length;
    }
    return 0;
}

}  // namespace

AnswerText::AnswerText(std::vector<std::string> stops) : stops_(std::move(stops)) {
    std::erase_if(stops_, [](const std::string& stop) { return stop.empty(); });
}

std::string AnswerText::push(std::string_view bytes) {
    if (stopped_) return {};
    std::string text = std::move(held_) + code_points_.push(bytes);
    held_.clear();
    std::size_t first = std::string::npos;
    for (const auto& stop : stops_)
        first = std::min(first, text.find(stop));
    if (first != std::string::npos) {
        stopped_ = true;
        text.erase(first);
        return text;
    }
    std::size_t hold = 0;
    for (const auto& stop : stops_)
        hold = std::max(hold, overlap(text, stop));
    held_ = text.substr(text.size() - hold);
    text.erase(text.size() - hold);
    return text;
}

std::string AnswerText::finish() {
    return std::exchange(held_, {});
}

}  // namespace molly::engine
