#pragma once
// Text that may be sensitive. Pure value.
#include <iosfwd>
#include <string>
#include <utility>

namespace molly::domain {

/// Holds prompts, answers and tool results. It neither streams, formats nor converts, so it cannot
/// reach a log.
class Content {
public:
    Content() = default;
    explicit Content(std::string text) : text_(std::move(text)) {}

    const std::string& text() const noexcept { return text_; }
    std::string take() && noexcept { return std::move(text_); }
    bool empty() const noexcept { return text_.empty(); }
    bool operator==(const Content&) const = default;

    friend std::ostream& operator<<(std::ostream&, const Content&) = delete;

private:
    std::string text_;
};

}  // namespace molly::domain
