#include "policy/restorer.h"

#include <utility>

#include "base/json.h"

namespace molly::policy {
namespace {

void append_value(std::string& out, const std::string& value, bool json) {
    if (!json) {
        out += value;
        return;
    }
    std::string quoted;
    append_json_string(quoted, value);
    out.append(quoted, 1, quoted.size() - 2);
}

}  // namespace

Restorer::Restorer(std::shared_ptr<const Placeholders> placeholders, bool json_text)
    : placeholders_(std::move(placeholders)), json_text_(json_text) {}

std::string Restorer::feed(std::string& tail, std::string_view piece, bool json) const {
    const std::string joined = std::exchange(tail, std::string()) + std::string(piece);
    const std::string_view text = joined;
    std::string out;
    std::size_t at = 0;
    while (at < text.size()) {
        const std::size_t open = text.find('[', at);
        out += text.substr(at, open - at);
        if (open == std::string_view::npos) break;
        // Placeholders begin and end with brackets and hold none, so no other begins inside one.
        const std::string_view rest = text.substr(open, placeholders_->longest());
        const std::size_t close = rest.find(']');
        const std::string* value = close == std::string_view::npos
                                       ? nullptr
                                       : placeholders_->value_of(rest.substr(0, close + 1));
        if (value != nullptr) {
            append_value(out, *value, json);
            at = open + close + 1;
        } else if (placeholders_->begins_one(text.substr(open))) {
            tail = text.substr(open);
            break;
        } else {
            out += '[';
            at = open + 1;
        }
    }
    return out;
}

void Restorer::release(domain::Delta& delta) {
    delta.text += std::exchange(text_, std::string());
    delta.reasoning += std::exchange(reasoning_, std::string());
    for (auto& [index, tail] : calls_) {
        if (tail.empty()) continue;
        domain::ToolCallDelta rest;
        rest.index = index;
        rest.arguments = std::exchange(tail, std::string());
        delta.tool_calls.push_back(std::move(rest));
    }
}

domain::Delta Restorer::restore(domain::Delta delta) {
    if (placeholders_->empty()) return delta;
    // Their tokens would show placeholders in pieces. They were not asked for.
    delta.logprobs.clear();
    if (!delta.text.empty()) delta.text = feed(text_, delta.text, json_text_);
    if (!delta.reasoning.empty()) delta.reasoning = feed(reasoning_, delta.reasoning, false);
    for (domain::ToolCallDelta& call : delta.tool_calls) {
        if (!call.arguments.empty())
            call.arguments = feed(calls_[call.index], call.arguments, true);
    }
    if (!delta.stop_sequence.empty()) {
        // It comes whole.
        std::string rest;
        delta.stop_sequence = feed(rest, delta.stop_sequence, false);
        delta.stop_sequence += rest;
    }
    if (delta.finish) release(delta);
    return delta;
}

domain::Delta Restorer::end() {
    domain::Delta delta;
    release(delta);
    return delta;
}

std::size_t Restorer::withheld() const noexcept {
    std::size_t bytes = text_.size() + reasoning_.size();
    for (const auto& [index, tail] : calls_)
        bytes += tail.size();
    return bytes;
}

}  // namespace molly::policy
