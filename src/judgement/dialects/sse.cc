#include "dialects/internal/sse.h"

#include <algorithm>
#include <utility>

namespace molly::dialects {
namespace {

std::unexpected<Error> too_long() {
    return fail(
        Error(ErrorCode::upstream_failed, "the upstream sent a line of more than 8 MiB in a stream")
            .reason("upstream_line_too_long"));
}

}  // namespace

Result<void> LineReader::piece(std::string_view bytes,
                               const std::function<Result<void>(std::string_view)>& each) {
    while (!bytes.empty()) {
        if (std::exchange(after_cr_, false) && bytes.front() == '\n') {
            bytes.remove_prefix(1);
            continue;
        }
        // One pass: looking for each of the two in turn would read a long piece many times over.
        const auto ends_line = [](char c) { return c == '\n' || c == '\r'; };
        const auto found = std::find_if(bytes.begin(), bytes.end(), ends_line);
        const auto end = static_cast<std::size_t>(found - bytes.begin());
        const std::string_view part = bytes.substr(0, end);
        if (held_.size() + part.size() > line_bytes_max) return too_long();
        if (found == bytes.end()) {
            held_ += part;
            return {};
        }
        after_cr_ = bytes[end] == '\r';
        bytes.remove_prefix(end + 1);
        if (held_.empty()) {
            TRY_DO(each(part));
            continue;
        }
        held_ += part;
        const std::string line = std::exchange(held_, {});
        TRY_DO(each(line));
    }
    return {};
}

Result<void> SseReader::piece(std::string_view bytes, const Each& each) {
    return lines_.piece(bytes, [&](std::string_view text) { return line(text, each); });
}

Result<void> SseReader::end(const Each& each) {
    const std::string rest(lines_.rest());
    if (!rest.empty()) TRY_DO(line(rest, each));
    return deliver(each);
}

Result<void> SseReader::line(std::string_view line, const Each& each) {
    if (std::exchange(first_, false) && line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
    if (line.empty()) return deliver(each);
    const std::size_t colon = line.find(':');
    const std::string_view field = line.substr(0, colon);
    std::string_view value;
    if (colon != std::string_view::npos) value = line.substr(colon + 1);
    if (value.starts_with(' ')) value.remove_prefix(1);
    if (field == "event") {
        name_ = value;
    } else if (field == "data") {
        if (data_.size() + value.size() > LineReader::line_bytes_max) return too_long();
        if (has_data_) data_ += '\n';
        has_data_ = true;
        data_ += value;
    }
    return {};
}

Result<void> SseReader::deliver(const Each& each) {
    const std::string name = std::exchange(name_, {});
    if (!std::exchange(has_data_, false)) return {};
    const std::string data = std::exchange(data_, {});
    return each({.name = name, .data = data});
}

}  // namespace molly::dialects
