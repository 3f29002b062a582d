#pragma once
// What a person sees: answers on standard output, everything else on standard error.
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/language.h"
#include "base/result.h"

namespace molly::app {

/// How a command ended, for scripts.
enum ExitCode : int {
    exit_done = 0,
    exit_failed = 1,       ///< anything not named below
    exit_usage = 2,        ///< options or configuration are wrong
    exit_denied = 3,       ///< a rule or a key forbids it
    exit_not_found = 4,    ///< what was named does not exist
    exit_unavailable = 5,  ///< no target, or no server, can do it now
    exit_unsound = 6,      ///< an audit found a fault
};

ExitCode exit_code_of(const Error& error) noexcept;

struct Terminal {
    Language language = Language::english;
    bool json = false;

    /// The sentence in the person's language.
    std::string_view say(std::string_view english, std::string_view italian) const {
        return molly::say(language, english, italian);
    }
    /// A row of words in that language.
    std::vector<std::string> words(
        std::initializer_list<std::pair<std::string_view, std::string_view>> pairs) const;
    /// A line of the result.
    void line(std::string_view text) const;
    /// Text of the result as it is, at once.
    void raw(std::string_view text) const;
    /// A remark beside the result, dim on a terminal.
    void note(std::string_view text) const;
    /// Tells an error (as JSON with --json) and gives its exit code.
    ExitCode failed(const Error& error) const;
    /// Columns aligned; the first row is the heading.
    void table(const std::vector<std::vector<std::string>>& rows) const;
};

bool standard_error_is_terminal() noexcept;
bool standard_input_is_terminal() noexcept;
bool standard_output_is_terminal() noexcept;

/// A bar on standard error, drawn at most ten times a second, and only on a terminal.
class ProgressBar {
public:
    explicit ProgressBar(std::string label) : label_(std::move(label)) {}
    ProgressBar(const ProgressBar&) = delete;
    ProgressBar& operator=(const ProgressBar&) = delete;
    ProgressBar(ProgressBar&&) = delete;
    ProgressBar& operator=(ProgressBar&&) = delete;
    ~ProgressBar();

    /// `total` 0: unknown.
    void show(std::uint64_t done, std::uint64_t total);

private:
    std::string label_;
    std::chrono::steady_clock::time_point drawn_{};
    bool visible_ = false;
};

/// "1.2 GB".
std::string byte_size(std::uint64_t bytes);

}  // namespace molly::app
