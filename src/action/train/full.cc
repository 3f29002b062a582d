#include "train/full.h"

#include <algorithm>
#include <cmath>

#include "train/internal/full_run.h"
#include "train/internal/run_lock.h"
#include "train/internal/whole_model.h"

namespace molly::train {
namespace {

constexpr double examples_per_step = 16;

void fill_in(FullPlan& plan, const FrozenModel& model, const Material& material) {
    FullOptions& options = plan.options;
    plan.model = model.name();
    options.context = fitting_context(options, material, context_limit(model.shape().context_max));
    const auto rows = static_cast<double>(
        Packing(sequences_of(material.training, false), options.context).rows());
    if (options.batch == 0) {
        const double wanted =
            std::round(examples_per_step * rows / static_cast<double>(material.training.size()));
        options.batch = static_cast<std::uint32_t>(std::clamp(wanted, 1.0, 16.0));
    }
    plan.threads = std::min(plan.threads, options.batch);
    plan.rows_at_once = options.batch / plan.threads >= 2 ? 2 : 1;
    fix_steps(options, plan, rows / options.batch);
    OptimizerOptions& optimizer = plan.optimizer;
    optimizer.learning_rate =
        options.learning_rate > 0 ? static_cast<float>(options.learning_rate) : 5e-4F;
}

}  // namespace

Result<FullOutcome> train_full(const FullOptions& options, TextCoder& coder, Watch& watch) {
    TRY_DO(check(options));
    FullPlan plan;
    plan.options = options;
    watch.prepare("reading", 0, 0);
    TRY(const FrozenModel model, FrozenModel::open(options.base));
    const std::uint32_t longest = context_limit(model.shape().context_max);
    TRY_DO(shape_of(model, longest));
    TRY(const Material material, Material::read(options, RowKind::answers, coder, longest));
    TRY_DO(fill_in_facts(plan.options, plan, coder));
    fill_in(plan, model, material);
    TRY(const Shape shape, shape_of(model, plan.options.context));
    plan.parameters = shape.parameters();
    std::error_code error;
    std::filesystem::create_directories(options.out, error);
    TRY(const RunLock lock, RunLock::take(options.out));
    TRY_DO(write_plan(options.out, plan));
    FullRun run(options.out, plan, shape, weights_of(model, Layout(shape)), material, watch);
    Checkpoint from;
    from.state = run.fresh();
    return run.go(std::move(from));
}

Result<FullOutcome> resume_full(const std::filesystem::path& folder, TextCoder& coder,
                                Watch& watch) {
    TRY(const FullPlan plan, read_full_plan(folder));
    TRY(const RunLock lock, RunLock::take(folder));
    TRY_DO(check_unchanged(plan.options, plan));
    TRY(const FrozenModel model, FrozenModel::open(plan.options.base));
    TRY(const Material material, Material::read(plan.options, RowKind::answers, coder,
                                                context_limit(model.shape().context_max)));
    TRY(const Shape shape, shape_of(model, plan.options.context));
    warn_other_processor(plan);
    FullRun run(folder, plan, shape, weights_of(model, Layout(shape)), material, watch);
    auto from = read_checkpoint(folder, run.size());
    if (!from && from.error().code() != ErrorCode::not_found) return fail(from.error());
    if (!from) {
        from = Checkpoint();
        from->state = run.fresh();
    }
    return run.go(*std::move(from));
}

}  // namespace molly::train
