#include "train/internal/run.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/json.h"
#include "train/internal/gguf_file.h"
#include "train/internal/whole_file.h"

namespace molly::train {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

json::object to_json(const Progress& now) {
    return json::object{{"step", now.step},
                        {"steps", now.steps},
                        {"tokens", now.tokens},
                        {"loss", now.loss},
                        {"held_out_loss", now.held_out_loss},
                        {"gradient_norm", now.gradient_norm},
                        {"learning_rate", now.learning_rate},
                        {"tokens_per_second", now.tokens_per_second},
                        {"seconds_left", now.seconds_left}};
}

Result<void> append_line(const std::filesystem::path& file, const json::object& line) {
    std::ofstream stream(file, std::ios::app);
    stream << to_text(json::value(line)) << '\n';
    stream.close();
    if (stream.good()) return {};
    return fail(ErrorCode::unavailable,
                fmt::format("cannot write {}; look for space and permissions", file.string()));
}

json::array to_json(const std::vector<SourceReport>& reports) {
    json::array out;
    for (const SourceReport& source : reports) {
        out.push_back(json::object{{"file", source.name},
                                   {"loss", source.loss},
                                   {"perplexity", std::exp(source.loss)},
                                   {"bits_per_byte", source.bits_per_byte},
                                   {"tokens", source.tokens}});
    }
    return out;
}

}  // namespace

Result<RunLock> RunLock::take(const std::filesystem::path& run) {
    const int file = ::open((run / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0) {
        return fail(ErrorCode::unavailable, fmt::format("cannot write into {}", run.string()));
    }
    if (::flock(file, LOCK_EX | LOCK_NB) != 0) {
        ::close(file);
        return fail(
            Error(ErrorCode::conflict,
                  fmt::format("another process trains in {}; wait for it or stop it", run.string()))
                .italian(fmt::format("un altro processo addestra in {}; attendi la sua "
                                     "fine o fermalo",
                                     run.string())));
    }
    return RunLock(file);
}

bool RunLock::taken(const std::filesystem::path& run) {
    const int file = ::open((run / "lock").c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) return false;
    const bool taken = ::flock(file, LOCK_EX | LOCK_NB) != 0;
    ::close(file);
    return taken;
}

RunLock::RunLock(RunLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

RunLock::~RunLock() {
    if (file_ >= 0) ::close(file_);
}

Run::Run(std::filesystem::path folder, RunPlan plan, const Tokenizer& tokenizer,
         const Corpus& corpus, Watch& watch)
    : folder_(std::move(folder)),
      plan_(std::move(plan)),
      tokenizer_(tokenizer),
      corpus_(corpus),
      watch_(watch),
      trainer_(plan_.shape, plan_.threads, plan_.at_once, plan_.precision),
      batch_(plan_.batch, plan_.shape.context) {}

double Run::measure_step() {
    TrainingState scratch = trainer_.fresh(plan_.seed);
    OptimizerOptions options = plan_.optimizer;
    options.steps = 1000;
    std::vector<double> spent;
    const auto start = std::chrono::steady_clock::now();
    for (std::uint64_t step = 0; step < 40 && !watch_.stop(); ++step) {
        watch_.prepare("measuring", step, 0);
        const auto begun = std::chrono::steady_clock::now();
        corpus_.fill(batch_, step, plan_.seed);
        trainer_.step(scratch, batch_.view(plan_.batch), options);
        if (step > 0) spent.push_back(seconds_since(begun));  // the first one warms up
        if (step >= 3 && seconds_since(start) > 15) break;
    }
    if (spent.empty()) return 1;
    std::sort(spent.begin(), spent.end());
    return spent[spent.size() / 2];
}

double Run::loss_of(const std::vector<const std::uint16_t*>& windows,
                    const std::vector<float>& weights) {
    double sum = 0;
    for (std::size_t from = 0; from < windows.size(); from += plan_.batch) {
        const std::size_t count = std::min<std::size_t>(plan_.batch, windows.size() - from);
        for (std::size_t s = 0; s < count; ++s)
            batch_.set(s, windows[from + s], corpus_.separator());
        sum += trainer_.evaluate(weights, batch_.view(count)) * static_cast<double>(count);
    }
    return sum / static_cast<double>(std::max<std::size_t>(windows.size(), 1));
}

/// Gives false when patience is at its end.
bool Run::evaluate(Checkpoint& now) {
    now.held_out_loss = loss_of(corpus_.held_out(-1, plan_.evaluation_windows), now.state.weights);
    // A thousandth better counts; less is noise of the windows.
    if (now.best_held_out_loss == 0 || now.held_out_loss < now.best_held_out_loss * 0.999) {
        now.best_held_out_loss = now.held_out_loss;
        now.evaluations_since_best = 0;
    } else {
        ++now.evaluations_since_best;
    }
    return plan_.patience == 0 || now.evaluations_since_best < plan_.patience;
}

Result<void> Run::report(Checkpoint& now, const StepReport& step) {
    const std::uint64_t since = (now.state.step - 1) % plan_.report_every + 1;
    const double seconds = std::max(seconds_since(began_), 1e-9);
    const auto done = static_cast<double>(now.state.step - began_step_);
    progress_.step = now.state.step;
    progress_.steps = plan_.optimizer.steps;
    progress_.tokens = now.state.step * plan_.tokens_per_step();
    progress_.loss = now.loss_sum / static_cast<double>(since);
    progress_.held_out_loss = now.held_out_loss;
    progress_.gradient_norm = step.gradient_norm;
    progress_.learning_rate = static_cast<double>(step.rate);
    progress_.tokens_per_second = done * static_cast<double>(plan_.tokens_per_step()) / seconds;
    progress_.seconds_left = seconds / done * static_cast<double>(progress_.steps - progress_.step);
    watch_.progress(progress_);
    if (since != plan_.report_every && now.state.step != plan_.optimizer.steps) return {};
    now.loss_sum = 0;
    return append_line(folder_ / "log.jsonl", to_json(progress_));
}

Result<Outcome> Run::go(Checkpoint now) {
    began_ = std::chrono::steady_clock::now();
    began_step_ = now.state.step;
    auto saved = began_;
    bool patient = plan_.patience == 0 || now.evaluations_since_best < plan_.patience;
    while (now.state.step < plan_.optimizer.steps && patient) {
        if (watch_.stop()) {
            TRY_DO(write_checkpoint(folder_, now));
            Outcome outcome;
            outcome.last = progress_;
            return outcome;
        }
        corpus_.fill(batch_, now.state.step, plan_.seed);
        const StepReport step = trainer_.step(now.state, batch_.view(plan_.batch), plan_.optimizer);
        if (!std::isfinite(step.loss) || !std::isfinite(step.gradient_norm)) {
            return fail(Error(ErrorCode::internal,
                              "the loss is no number any more; start anew with a lower learning "
                              "rate")
                            .italian("la perdita non è più un numero; ricomincia con un passo di "
                                     "apprendimento più basso"));
        }
        now.loss_sum += step.loss;
        if (now.state.step % plan_.evaluate_every == 0 || now.state.step == plan_.optimizer.steps) {
            patient = evaluate(now);
        }
        TRY_DO(report(now, step));
        if (seconds_since(saved) > plan_.checkpoint_minutes * 60) {
            TRY_DO(write_checkpoint(folder_, now));
            saved = std::chrono::steady_clock::now();
        }
    }
    TRY_DO(write_checkpoint(folder_, now));
    return finish(now);
}

Result<Outcome> Run::finish(const Checkpoint& now) {
    Outcome outcome;
    outcome.finished = true;
    outcome.last = progress_;
    outcome.last.step = now.state.step;
    for (int s = 0; s < static_cast<int>(corpus_.sources().size()); ++s) {
        watch_.prepare("evaluating", static_cast<std::uint64_t>(s), corpus_.sources().size());
        const auto windows = corpus_.held_out(s, plan_.evaluation_windows);
        if (windows.empty()) continue;
        SourceReport source;
        source.name = corpus_.sources()[static_cast<std::size_t>(s)].name;
        source.loss = loss_of(windows, now.state.weights);
        source.tokens = windows.size() * plan_.shape.context;
        double bytes = 0;
        for (const std::uint16_t* window : windows) {
            for (std::size_t t = 1; t <= plan_.shape.context; ++t) {
                const bool mark = window[t] == corpus_.separator();
                bytes += mark ? 1.0 : static_cast<double>(tokenizer_.bytes(window[t]).size());
            }
        }
        source.bits_per_byte =
            source.loss * static_cast<double>(source.tokens) / std::log(2.0) / bytes;
        outcome.held_out.push_back(std::move(source));
    }
    ModelCard card;
    card.name = plan_.name;
    card.license = plan_.license;
    card.description =
        fmt::format("Pre-trained by molly train base, {} tokens, {} parameters",
                    now.state.step * plan_.tokens_per_step(), plan_.shape.parameters());
    outcome.model = folder_ / "model-f16.gguf";
    TRY_DO(write_gguf_model(outcome.model, plan_.shape, now.state.weights, tokenizer_,
                            WeightType::f16, card));
    if (plan_.shape.embed % 32 == 0 && plan_.shape.feed_forward % 32 == 0) {
        TRY_DO(write_gguf_model(folder_ / "model-q8_0.gguf", plan_.shape, now.state.weights,
                                tokenizer_, WeightType::q8_0, card));
    }
    json::object report;
    report["name"] = plan_.name;
    report["steps"] = now.state.step;
    report["tokens"] = now.state.step * plan_.tokens_per_step();
    report["parameters"] = plan_.shape.parameters();
    report["held_out"] = to_json(outcome.held_out);
    TRY_DO(write_whole(folder_ / "report.json", to_text(json::value(std::move(report))) + "\n"));
    return outcome;
}

}  // namespace molly::train
