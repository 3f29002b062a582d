#include "train/internal/lora_run.h"

#include <memory>

#include <fmt/format.h>

#include "base/json.h"
#include "train/internal/adapter_file.h"
#include "train/internal/loop.h"
#include "train/internal/random.h"
#include "train/internal/whole_file.h"

namespace molly::train {

/// SFT: rows of packed answers.
class LoraRun::Answers : public LoopWork {
public:
    explicit Answers(LoraRun& run)
        : run_(run),
          packing_(sequences_of(run.material_.training, false), run.plan_.options.context),
          held_out_(sequences_of(run.material_.held_out, false), run.plan_.options.context) {}

    StepReport step(TrainingState& state) override {
        const LoraOptions& options = run_.plan_.options;
        const auto rows = packing_.rows_of(state.step, options.batch, options.seed);
        const std::uint64_t drop = options.dropout > 0 ? Random::mix(options.seed) | 1U : 0;
        return run_.trainer_.step(state, packing_.batch(rows), run_.plan_.optimizer, drop);
    }
    double held_out_loss(const std::vector<float>& weights) override { return loss(weights); }
    double loss(std::span<const float> adapter) {
        if (held_out_.rows() == 0) return 0;
        return run_.trainer_.evaluate(adapter, held_out_.batch(all_rows(held_out_)));
    }

private:
    LoraRun& run_;
    Packing packing_, held_out_;
};

/// DPO: pairs, whose log-probabilities under the base are worked out once.
class LoraRun::Pairs : public LoopWork {
public:
    explicit Pairs(LoraRun& run) : run_(run) {
        options_.beta = static_cast<float>(run.plan_.options.beta);
        options_.sft_weight = static_cast<float>(run.plan_.options.sft_weight);
        reference_ = score(run.material_.training, "reference");
        held_out_reference_ = score(run.material_.held_out, nullptr);
        for (std::size_t i = 0; i < run.material_.training.size(); ++i)
            single_.push_back({{static_cast<Token>(i), 0}, {0, 1}});
        std::vector<const Sequence*> order;
        for (const Sequence& one : single_)
            order.push_back(&one);
        // A packing of single places is an epoch's order of pairs.
        order_ = std::make_unique<Packing>(std::move(order), 1);
    }

    StepReport step(TrainingState& state) override {
        const LoraOptions& options = run_.plan_.options;
        std::vector<const Example*> chosen;
        std::vector<double> reference;
        for (const std::size_t row : order_->rows_of(state.step, options.batch, options.seed)) {
            chosen.push_back(run_.material_.training[row]);
            reference.push_back(reference_[2 * row]);
            reference.push_back(reference_[2 * row + 1]);
        }
        const Packing packing(sequences_of(chosen, true), options.context);
        return run_.trainer_.step(state, packing.batch(all_rows(packing)), reference, options_,
                                  run_.plan_.optimizer);
    }
    double held_out_loss(const std::vector<float>& weights) override {
        return report(weights).loss;
    }
    PairReport report(std::span<const float> adapter) {
        if (run_.material_.held_out.empty()) return {};
        const Packing packing(sequences_of(run_.material_.held_out, true),
                              run_.plan_.options.context);
        return run_.trainer_.evaluate(adapter, packing.batch(all_rows(packing)),
                                      held_out_reference_, options_);
    }

private:
    std::vector<double> score(const std::vector<const Example*>& examples, const char* what) {
        std::vector<double> out(examples.size() * 2);
        constexpr std::size_t at_once = 16;
        for (std::size_t from = 0; from < examples.size(); from += at_once) {
            if (what != nullptr) run_.watch_.prepare(what, from, examples.size());
            const std::size_t to = std::min(examples.size(), from + at_once);
            const std::vector<const Example*> part(
                examples.begin() + static_cast<std::ptrdiff_t>(from),
                examples.begin() + static_cast<std::ptrdiff_t>(to));
            const Packing packing(sequences_of(part, true), run_.plan_.options.context);
            run_.trainer_.score({}, packing.batch(all_rows(packing)),
                                std::span(out).subspan(2 * from, 2 * (to - from)));
        }
        return out;
    }

    LoraRun& run_;
    PairOptions options_;
    std::vector<double> reference_, held_out_reference_;
    std::vector<Sequence> single_;
    std::unique_ptr<Packing> order_;
};

LoraRun::LoraRun(std::filesystem::path folder, LoraPlan plan, const FrozenModel& model,
                 const Material& material, Watch& watch)
    : folder_(std::move(folder)),
      plan_(std::move(plan)),
      model_(model),
      material_(material),
      watch_(watch),
      layout_(model, plan_.options.rank, parse_modules(plan_.options.modules).value()),
      trainer_(model, layout_, plan_.scale(), plan_.threads, plan_.precision, plan_.rows_at_once,
               plan_.options.context) {}

Result<LoraOutcome> LoraRun::go(Checkpoint now) {
    const LoopPlan loop = loop_of(plan_.options, plan_, !material_.held_out.empty());
    LoraOutcome stopped;
    if (plan_.options.method == Method::answers) {
        Answers work(*this);
        const double base = work.loss({});
        TRY(const bool finished, run_loop(folder_, loop, work, watch_, now, progress_));
        if (finished) return finish(now, base, 0);
    } else {
        Pairs work(*this);
        const double base = work.report({}).loss;
        TRY(const bool finished, run_loop(folder_, loop, work, watch_, now, progress_));
        if (finished) return finish(now, base, work.report(chosen_weights(now)).accuracy);
    }
    stopped.last = progress_;
    return stopped;
}

Result<LoraOutcome> LoraRun::finish(const Checkpoint& now, double base_loss, double accuracy) {
    const LoraOptions& options = plan_.options;
    LoraOutcome out;
    out.finished = true;
    out.last = progress_;
    out.last.step = now.state.step;
    out.name = options.name;
    out.method = options.method;
    out.base = options.base;
    out.base_hash = plan_.base_hash;
    out.held_out_base = base_loss;
    out.held_out_adapter = now.best.empty() ? now.held_out_loss : now.best_held_out_loss;
    out.accuracy = accuracy;
    out.held_out_rows = material_.held_out.size();
    out.rows = material_.training.size();
    out.facts = material_.examples.facts;
    out.parameters = layout_.size;
    out.learning_rate = static_cast<double>(plan_.optimizer.learning_rate);
    out.seed = options.seed;
    out.license = options.license;
    out.tag = options.tag;
    out.adapter = folder_ / "adapter.gguf";
    AdapterCard card;
    card.name = options.name;
    card.architecture = model_.shape().family;
    card.base = model_.name();
    card.alpha = static_cast<float>(options.alpha);
    card.license = options.license;
    TRY_DO(write_adapter(out.adapter, layout_, chosen_weights(now), card));
    json::object report;
    report["name"] = out.name;
    report["steps"] = now.state.step;
    report["parameters"] = out.parameters;
    report["rows"] = out.rows;
    report["held_out_rows"] = out.held_out_rows;
    report["held_out_loss_base"] = out.held_out_base;
    report["held_out_loss_adapter"] = out.held_out_adapter;
    if (options.method == Method::pairs) report["held_out_accuracy"] = accuracy;
    TRY_DO(write_whole(folder_ / "report.json", to_text(json::value(std::move(report))) + "\n"));
    return out;
}

}  // namespace molly::train
