#include "train/internal/loop.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>

#include <fmt/format.h>

#include "base/json.h"

namespace molly::train {
namespace {

using Time = std::chrono::steady_clock::time_point;

double seconds_since(Time start) {
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

/// Gives false when patience is at its end.
bool evaluate(const LoopPlan& plan, LoopWork& work, Checkpoint& now) {
    now.held_out_loss = work.held_out_loss(now.state.weights);
    // A thousandth better counts; less is noise of the held-out part.
    if (now.best_held_out_loss == 0 || now.held_out_loss < now.best_held_out_loss * 0.999) {
        now.best_held_out_loss = now.held_out_loss;
        now.evaluations_since_best = 0;
        if (plan.patience > 0) now.best = now.state.weights;
    } else {
        ++now.evaluations_since_best;
    }
    return plan.patience == 0 || now.evaluations_since_best < plan.patience;
}

class Reporter {
public:
    Reporter(const std::filesystem::path& folder, const LoopPlan& plan, std::uint64_t step,
             Progress& progress)
        : folder_(folder),
          plan_(plan),
          progress_(progress),
          began_(std::chrono::steady_clock::now()),
          began_step_(step) {}

    Result<void> report(Checkpoint& now, const StepReport& step, Watch& watch) {
        const std::uint64_t since = (now.state.step - 1) % plan_.report_every + 1;
        const double seconds = std::max(seconds_since(began_), 1e-9);
        const auto done = static_cast<double>(now.state.step - began_step_);
        progress_.step = now.state.step;
        progress_.steps = plan_.steps;
        progress_.tokens = now.state.step * plan_.tokens_per_step;
        progress_.loss = now.loss_sum / static_cast<double>(since);
        progress_.held_out_loss = now.held_out_loss;
        progress_.gradient_norm = step.gradient_norm;
        progress_.learning_rate = static_cast<double>(step.rate);
        progress_.tokens_per_second = done * static_cast<double>(plan_.tokens_per_step) / seconds;
        progress_.seconds_left =
            seconds / done * static_cast<double>(progress_.steps - progress_.step);
        watch.progress(progress_);
        if (since != plan_.report_every && now.state.step != plan_.steps) return {};
        now.loss_sum = 0;
        return append_line(folder_ / "log.jsonl", to_json(progress_));
    }

private:
    const std::filesystem::path& folder_;
    const LoopPlan& plan_;
    Progress& progress_;
    Time began_;
    std::uint64_t began_step_;
};

}  // namespace

Result<bool> run_loop(const std::filesystem::path& folder, const LoopPlan& plan, LoopWork& work,
                      Watch& watch, Checkpoint& now, Progress& progress) {
    Reporter reporter(folder, plan, now.state.step, progress);
    Time saved = std::chrono::steady_clock::now();
    bool patient = plan.patience == 0 || now.evaluations_since_best < plan.patience;
    while (now.state.step < plan.steps && patient) {
        if (watch.stop()) {
            TRY_DO(write_checkpoint(folder, now));
            return false;
        }
        const StepReport step = work.step(now.state);
        if (!std::isfinite(step.loss) || !std::isfinite(step.gradient_norm)) {
            return fail(Error(ErrorCode::internal,
                              "the loss is no number any more; start anew with a lower learning "
                              "rate")
                            .italian("la perdita non è più un numero; ricomincia con un passo di "
                                     "apprendimento più basso"));
        }
        now.loss_sum += step.loss;
        if (now.state.step % plan.evaluate_every == 0 || now.state.step == plan.steps)
            patient = evaluate(plan, work, now);
        TRY_DO(reporter.report(now, step, watch));
        if (seconds_since(saved) > plan.checkpoint_minutes * 60) {
            TRY_DO(write_checkpoint(folder, now));
            saved = std::chrono::steady_clock::now();
        }
    }
    TRY_DO(write_checkpoint(folder, now));
    return true;
}

const std::vector<float>& chosen_weights(const Checkpoint& checkpoint) noexcept {
    return checkpoint.best.empty() ? checkpoint.state.weights : checkpoint.best;
}

}  // namespace molly::train
