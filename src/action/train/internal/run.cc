#include "train/internal/run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"
#include "train/internal/gguf_file.h"
#include "train/internal/loop.h"
#include "train/internal/whole_file.h"

namespace molly::train {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
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

class Run::Work : public LoopWork {
public:
    explicit Work(Run& run) : run_(run) {}
    StepReport step(TrainingState& state) override {
        run_.corpus_.fill(run_.batch_, state.step, run_.plan_.seed);
        return run_.trainer_.step(state, run_.batch_.view(run_.plan_.batch), run_.plan_.optimizer);
    }
    double held_out_loss(const std::vector<float>& weights) override {
        return run_.loss_of(run_.corpus_.held_out(-1, run_.plan_.evaluation_windows), weights);
    }

private:
    Run& run_;
};

Result<Outcome> Run::go(Checkpoint now) {
    LoopPlan loop;
    loop.steps = plan_.optimizer.steps;
    loop.evaluate_every = plan_.evaluate_every;
    loop.report_every = plan_.report_every;
    loop.patience = plan_.patience;
    loop.checkpoint_minutes = plan_.checkpoint_minutes;
    loop.tokens_per_step = plan_.tokens_per_step();
    Work work(*this);
    TRY(const bool finished, run_loop(folder_, loop, work, watch_, now, progress_));
    if (finished) return finish(now);
    Outcome outcome;
    outcome.last = progress_;
    return outcome;
}

Result<Outcome> Run::finish(const Checkpoint& now) {
    const std::vector<float>& weights = chosen_weights(now);
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
        source.loss = loss_of(windows, weights);
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
    TRY_DO(
        write_gguf_model(outcome.model, plan_.shape, weights, tokenizer_, WeightType::f16, card));
    if (plan_.shape.embed % 32 == 0 && plan_.shape.feed_forward % 32 == 0) {
        TRY_DO(write_gguf_model(folder_ / "model-q8_0.gguf", plan_.shape, weights, tokenizer_,
                                WeightType::q8_0, card));
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
