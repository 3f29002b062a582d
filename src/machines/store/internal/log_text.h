#pragma once
// A receipt log as text: one line for the first signer, one for each receipt and each signed head.
// Pure; takes any bytes.
#include <string>
#include <string_view>

#include "store/internal/chain_check.h"

namespace molly::store::internal {

std::string signer_line(std::string_view public_key);
std::string line_of(const Link& link);
std::string line_of(const Head& head);

/// Checks a log line by line. Each line must be exactly as it was written, so that no byte is free.
class LogText {
public:
    explicit LogText(std::vector<WitnessedHead> witnessed) : check_(std::move(witnessed)) {}

    /// Gives whether to go on. `cut`: the line has no end.
    bool line(std::string_view line, bool cut);
    /// Errors: corrupt (not a log at all); `name` is for the message.
    Result<AuditReport> finish(std::string_view name);

private:
    bool entry(std::string_view line, bool cut);

    ChainCheck check_;
    bool any_ = false;
    bool log_ = false;  // the first line names a signer
};

}  // namespace molly::store::internal
