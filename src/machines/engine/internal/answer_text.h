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
    /// `stops` are the caller's, `ends` the chat template's own. Empty ones are ignored.
    explicit AnswerText(std::vector<std::string> stops, std::vector<std::string> ends = {});

    /// The text that became certain with this token's bytes. After a stop, always empty.
    std::string push(std::string_view bytes);
    /// What was held for a stop string that never came. An unfinished code point is dropped.
    std::string finish();
    bool stopped() const noexcept { return stopped_; }
    /// The caller's stop string that ended the answer; empty: none did.
    const std::string& stopped_by() const noexcept { return stopped_by_; }

private:
    std::vector<std::string> stops_;
    Utf8Stream code_points_;
    std::string held_;         // not sent yet: may become a stop string
    std::size_t callers_ = 0;  // of the stops, the first ones
    bool stopped_ = false;
    std::string stopped_by_;
};

}  // namespace molly::engine
