#pragma once
// From token bytes to text that may be sent: whole code points only, and nothing that a stop string
// may still swallow. Pure.
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"

namespace molly::engine {

/// The text of one answer in the making. Holds back only an unfinished code point and the longest
/// end that is a proper beginning of a stop string, so that a stream equals the whole answer.
class AnswerText {
public:
    /// Empty stop strings are ignored.
    explicit AnswerText(std::vector<std::string> stops);

    /// The text that became certain with this token's bytes. After a stop, always empty.
    std::string push(std::string_view bytes);
    /// What was held for a stop string that never came. An unfinished code point is dropped.
    std::string finish();
    bool stopped() const noexcept { return stopped_; }

private:
    std::vector<std::string> stops_;
    Utf8Stream code_points_;
    std::string held_;  // not sent yet: may become a stop string
    bool stopped_ = false;
};

}  // namespace molly::engine
