#pragma once
// Shows a training run on the terminal, and lets Ctrl-C end it at a checkpoint.
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "app/terminal.h"
#include "train/train.h"

namespace molly::app {

/// `1:02:03`.
std::string clock_text(double seconds);

/// While one lives, Ctrl-C asks for a checkpoint; a second one ends the process at once.
class TerminalWatch final : public train::Watch {
public:
    explicit TerminalWatch(const Terminal& terminal);
    TerminalWatch(const TerminalWatch&) = delete;
    TerminalWatch& operator=(const TerminalWatch&) = delete;
    TerminalWatch(TerminalWatch&&) = delete;
    TerminalWatch& operator=(TerminalWatch&&) = delete;
    ~TerminalWatch() override;

    void prepare(const char* what, std::uint64_t done, std::uint64_t total) override;
    void progress(const train::Progress& now) override;
    bool stop() override;

private:
    std::string word_of(std::string_view what) const;

    const Terminal& terminal_;
    std::optional<ProgressBar> bar_;
    const char* preparing_ = nullptr;
    std::chrono::steady_clock::time_point shown_{};
};

}  // namespace molly::app
