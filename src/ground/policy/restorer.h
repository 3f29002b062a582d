#pragma once
// Puts the values back into an answer that came with placeholders, while it comes. One answer each;
// used by one coroutine.
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "domain/response.h"
#include "policy/placeholders.h"

namespace molly::policy {

class Restorer {
public:
    /// `json_text`: the answer's text is JSON, so that values are escaped there. Arguments of tool
    /// calls always are.
    Restorer(std::shared_ptr<const Placeholders> placeholders, bool json_text);

    /// The Delta with its placeholders restored. What may be the beginning of one is withheld until
    /// it is decided, in each of text, reasoning and tool calls for itself: at most one byte less
    /// than the longest placeholder. The Delta with the finish reason carries the rest.
    domain::Delta restore(domain::Delta delta);
    /// The rest of an answer that had no finish reason.
    domain::Delta end();

    /// Bytes that are held back now, over all channels.
    std::size_t withheld() const noexcept;

private:
    std::string feed(std::string& tail, std::string_view piece, bool json) const;
    void release(domain::Delta& delta);

    std::shared_ptr<const Placeholders> placeholders_;
    bool json_text_;
    std::string text_;  // the tails
    std::string reasoning_;
    std::map<std::uint32_t, std::string> calls_;
};

}  // namespace molly::policy
