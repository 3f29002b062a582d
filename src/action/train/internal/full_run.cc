#include "train/internal/full_run.h"

#include <fmt/format.h>

#include "base/json.h"
#include "train/internal/gguf_file.h"
#include "train/internal/whole_file.h"

namespace molly::train {

Result<void> write_plan(const std::filesystem::path& run, const FullPlan& plan) {
    json::object out = tuning_json("full", plan.options, plan);
    out["model"] = plan.model;
    return write_whole(run / "run.json", to_text(json::value(std::move(out))) + "\n");
}

Result<FullPlan> read_full_plan(const std::filesystem::path& run) {
    TRY(const json::object in, read_plan_file(run, "full"));
    FullPlan plan;
    if (!read_tuning(in, plan.options, plan) || !read_field(in, "model", plan.model))
        return fail(damaged_plan(run));
    plan.options.out = run;
    return plan;
}

class FullRun::Work : public LoopWork {
public:
    explicit Work(FullRun& run)
        : run_(run),
          packing_(sequences_of(run.material_.training, false), run.plan_.options.context),
          held_out_(sequences_of(run.material_.held_out, false), run.plan_.options.context) {}

    StepReport step(TrainingState& state) override {
        const FullOptions& options = run_.plan_.options;
        const PackedBatch batch =
            packing_.batch(packing_.rows_of(state.step, options.batch, options.seed));
        return run_.trainer_.step(state, batch.view(), run_.plan_.optimizer);
    }
    double held_out_loss(const std::vector<float>& weights) override {
        if (held_out_.rows() == 0) return 0;
        return run_.trainer_.evaluate(weights, held_out_.batch(all_rows(held_out_)).view());
    }

private:
    FullRun& run_;
    Packing packing_, held_out_;
};

FullRun::FullRun(std::filesystem::path folder, FullPlan plan, const Shape& shape,
                 std::vector<float> start, const Material& material, Watch& watch)
    : folder_(std::move(folder)),
      plan_(std::move(plan)),
      trainer_(shape, plan_.threads, plan_.rows_at_once, plan_.precision),
      start_(std::move(start)),
      material_(material),
      watch_(watch) {}

TrainingState FullRun::fresh() const {
    TrainingState state;
    state.weights = start_;
    state.first.resize(start_.size());
    state.second.resize(start_.size());
    return state;
}

Result<FullOutcome> FullRun::go(Checkpoint now) {
    const LoopPlan loop = loop_of(plan_.options, plan_, !material_.held_out.empty());
    Work work(*this);
    const double before = work.held_out_loss(start_);
    TRY(const bool finished, run_loop(folder_, loop, work, watch_, now, progress_));
    if (finished) return finish(now, before);
    FullOutcome stopped;
    stopped.last = progress_;
    return stopped;
}

Result<FullOutcome> FullRun::finish(const Checkpoint& now, double before) {
    FullOutcome out;
    out.finished = true;
    out.last = progress_;
    out.last.step = now.state.step;
    out.held_out_before = before;
    out.held_out_after = now.best.empty() ? now.held_out_loss : now.best_held_out_loss;
    out.held_out_rows = material_.held_out.size();
    out.rows = material_.training.size();
    out.parameters = size();
    out.facts = material_.examples.facts;
    ModelCard card;
    card.name = plan_.options.name;
    card.license = plan_.options.license;
    card.languages.clear();
    card.description = fmt::format(
        "{}, all weights tuned by molly train full on {} rows of class "
        "{}, {} steps",
        plan_.model, out.rows, out.facts.label_class, out.last.step);
    const std::vector<float>& weights = chosen_weights(now);
    const Shape& shape = trainer_.shape();
    const auto& base = plan_.options.base;
    out.model = folder_ / "model-f16.gguf";
    TRY_DO(write_gguf_model_like(base, out.model, shape, weights, WeightType::f16, card));
    if (shape.embed % 32 == 0 && shape.feed_forward % 32 == 0) {
        TRY_DO(write_gguf_model_like(base, folder_ / "model-q8_0.gguf", shape, weights,
                                     WeightType::q8_0, card));
    }
    const json::object report{{"name", plan_.options.name},
                              {"steps", out.last.step},
                              {"parameters", out.parameters},
                              {"rows", out.rows},
                              {"class", out.facts.label_class},
                              {"held_out_rows", out.held_out_rows},
                              {"held_out_loss_before", out.held_out_before},
                              {"held_out_loss_after", out.held_out_after}};
    TRY_DO(write_whole(folder_ / "report.json", to_text(json::value(report)) + "\n"));
    return out;
}

}  // namespace molly::train
