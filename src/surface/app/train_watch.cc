#include "app/train_watch.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>

#include <fmt/format.h>

#include "base/json.h"

namespace molly::app {
namespace {

std::atomic<bool> interrupted = false;

void interrupt(int signal) {
    interrupted = true;
    std::signal(signal, SIG_DFL);
}

}  // namespace

std::string clock_text(double seconds) {
    const auto whole = static_cast<long>(std::max(seconds, 0.0));
    return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

TerminalWatch::TerminalWatch(const Terminal& terminal) : terminal_(terminal) {
    interrupted = false;
    std::signal(SIGINT, interrupt);
    std::signal(SIGTERM, interrupt);
}

TerminalWatch::~TerminalWatch() {
    std::signal(SIGINT, SIG_DFL);
    std::signal(SIGTERM, SIG_DFL);
}

void TerminalWatch::prepare(const char* what, std::uint64_t done, std::uint64_t total) {
    if (!bar_ || what != preparing_) {
        bar_.reset();
        bar_.emplace(word_of(what));
        preparing_ = what;
    }
    bar_->show(done, total);
}

void TerminalWatch::progress(const train::Progress& now) {
    bar_.reset();
    // On a terminal a line that renews itself, elsewhere one every half minute.
    const auto time = std::chrono::steady_clock::now();
    const bool last = now.step == now.steps;
    const auto pause =
        standard_error_is_terminal() ? std::chrono::milliseconds(500) : std::chrono::seconds(30);
    if (!last && time - shown_ < pause) return;
    shown_ = time;
    if (terminal_.json) {
        terminal_.line(
            to_text(json::value(json::object{{"step", now.step},
                                             {"steps", now.steps},
                                             {"tokens", now.tokens},
                                             {"loss", now.loss},
                                             {"held_out_loss", now.held_out_loss},
                                             {"tokens_per_second", now.tokens_per_second},
                                             {"seconds_left", now.seconds_left}})));
        return;
    }
    const std::string line = fmt::format(
        "{} {}/{}  {} {:.3f}  {} {:.3f}  {:.0f} token/s  {} {}", terminal_.say("step", "passo"),
        now.step, now.steps, terminal_.say("loss", "perdita"), now.loss,
        terminal_.say("held-out", "di controllo"), now.held_out_loss, now.tokens_per_second,
        terminal_.say("left", "restano"), clock_text(now.seconds_left));
    if (standard_error_is_terminal()) {
        std::fputs(("\r\x1b[K" + line + (last ? "\n" : "")).c_str(), stderr);
    } else {
        std::fputs((line + "\n").c_str(), stderr);
    }
}

bool TerminalWatch::stop() {
    return interrupted;
}

std::string TerminalWatch::word_of(std::string_view what) const {
    if (what == "reading") return std::string(terminal_.say("reading", "lettura"));
    if (what == "measuring") return std::string(terminal_.say("measuring", "misura"));
    if (what == "reference") return std::string(terminal_.say("reference", "riferimento"));
    return std::string(terminal_.say("evaluating", "valutazione"));
}

}  // namespace molly::app
