#include "engine/internal/answer_text.h"

#include <algorithm>
#include <iterator>
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

AnswerText::AnswerText(std::vector<std::string> stops, std::vector<std::string> ends)
    : stops_(std::move(stops)) {
    const auto is_empty = [](const std::string& stop) { return stop.empty(); };
    std::erase_if(stops_, is_empty);
    callers_ = stops_.size();
    stops_.insert(stops_.end(), std::make_move_iterator(ends.begin()),
                  std::make_move_iterator(ends.end()));
    std::erase_if(stops_, is_empty);
}

std::string AnswerText::push(std::string_view bytes) {
    if (stopped_) return {};
    std::string text = std::move(held_) + code_points_.push(bytes);
    held_.clear();
    std::size_t first = std::string::npos;
    for (std::size_t i = 0; i < stops_.size(); ++i) {
        const std::size_t at = text.find(stops_[i]);
        if (at >= first) continue;
        first = at;
        stopped_by_ = i < callers_ ? stops_[i] : std::string();
    }
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
