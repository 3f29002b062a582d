#include "train/lora.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "train/internal/adapter_file.h"
#include "train/internal/lora_run.h"
#include "train/internal/packing.h"
#include "train/internal/run_lock.h"

namespace molly::train {
namespace {

constexpr std::uint32_t tokens_at_once = 2048;  // of one pass
constexpr double examples_per_step = 4;         // hundreds of rows want many small steps
constexpr std::uint32_t rank_max = 256;

Result<void> check_adapter(const LoraOptions& options) {
    const auto wrong = [](const char* param, const char* english, const char* italian) {
        return fail(Error(ErrorCode::invalid_request, english).italian(italian).param(param));
    };
    if (options.rank == 0 || options.rank > rank_max)
        return wrong("rank", "the rank is 1 to 256", "il rango va da 1 a 256");
    if (options.dropout < 0 || options.dropout >= 1)
        return wrong("dropout", "dropout is a share from 0 to below 1",
                     "il dropout è una quota da 0 a meno di 1");
    if (options.method == Method::pairs && !(options.beta > 0))
        return wrong("beta", "beta is above 0", "beta è maggiore di 0");
    TRY_DO(parse_modules(options.modules));
    return check(options);
}

RowKind rows_of(Method method) {
    return method == Method::pairs ? RowKind::pairs : RowKind::answers;
}

/// Fills in what the options leave to the data and the machine.
void fill_in(LoraPlan& plan, const FrozenModel& model, const Material& material) {
    LoraOptions& options = plan.options;
    options.context = fitting_context(options, material, context_limit(model.shape().context_max));
    if (options.alpha <= 0) options.alpha = 2.0 * options.rank;
    const bool pairs = options.method == Method::pairs;
    const auto examples = static_cast<double>(material.training.size());
    const auto rows = static_cast<double>(
        Packing(sequences_of(material.training, false), options.context).rows());
    if (options.batch == 0) {
        const double wanted = pairs ? 8 : std::round(examples_per_step * rows / examples);
        options.batch = static_cast<std::uint32_t>(std::clamp(wanted, 1.0, 8.0));
    }
    plan.rows_at_once = std::max(1U, tokens_at_once / options.context);
    if (!pairs) plan.rows_at_once = std::min(plan.rows_at_once, options.batch);
    fix_steps(options, plan, (pairs ? examples : rows) / options.batch);
    OptimizerOptions& optimizer = plan.optimizer;
    optimizer.learning_rate = options.learning_rate > 0 ? static_cast<float>(options.learning_rate)
                              : pairs                   ? 1e-4F
                                                        : 1e-3F;
    optimizer.decay = 0;
    optimizer.beta_2 = 0.999F;
}

Result<Checkpoint> begin(const LoraRun& run, const LoraPlan& plan) {
    Checkpoint out;
    out.state = run.fresh();
    if (!plan.options.from.empty()) {
        TRY(out.state.weights, read_adapter(plan.options.from, run.layout()));
    }
    return out;
}

}  // namespace

Result<LoraOutcome> train_lora(const LoraOptions& options, TextCoder& coder, Watch& watch) {
    TRY_DO(check_adapter(options));
    LoraPlan plan;
    plan.options = options;
    watch.prepare("reading", 0, 0);
    TRY(const FrozenModel model, FrozenModel::open(plan.options.base));
    TRY(const Material material, Material::read(plan.options, rows_of(options.method), coder,
                                                context_limit(model.shape().context_max)));
    TRY_DO(fill_in_facts(plan.options, plan, coder));
    if (!options.from.empty()) plan.options.from = std::filesystem::absolute(options.from);
    TRY(plan.from_hash, hash_of(plan.options.from));
    fill_in(plan, model, material);
    std::error_code error;
    std::filesystem::create_directories(options.out, error);
    TRY(const RunLock lock, RunLock::take(options.out));
    plan.parameters =
        LoraLayout(model, plan.options.rank, parse_modules(plan.options.modules).value()).size;
    LoraRun run(options.out, plan, model, material, watch);
    TRY(Checkpoint from, begin(run, plan));
    TRY_DO(write_plan(options.out, plan));
    return run.go(std::move(from));
}

Result<LoraOutcome> resume_lora(const std::filesystem::path& folder, TextCoder& coder,
                                Watch& watch) {
    TRY(const LoraPlan plan, read_lora_plan(folder));
    TRY(const RunLock lock, RunLock::take(folder));
    TRY_DO(check_unchanged(plan.options, plan));
    TRY(const std::string from_hash, hash_of(plan.options.from));
    if (from_hash != plan.from_hash) return fail(changed_since(plan.options.from));
    TRY(const FrozenModel model, FrozenModel::open(plan.options.base));
    TRY(const Material material, Material::read(plan.options, rows_of(plan.options.method), coder,
                                                context_limit(model.shape().context_max)));
    warn_other_processor(plan);
    LoraRun run(folder, plan, model, material, watch);
    auto from = read_checkpoint(folder, run.layout().size);
    if (!from && from.error().code() != ErrorCode::not_found) return fail(from.error());
    if (!from) from = begin(run, plan);
    if (!from) return fail(from.error());
    return run.go(*std::move(from));
}

Result<AdapterSizes> adapter_sizes(const std::filesystem::path& base, const std::string& modules) {
    TRY(const auto wanted, parse_modules(modules));
    TRY(const FrozenModel model, FrozenModel::open(base));
    AdapterSizes out;
    out.base = model.name();
    out.base_parameters = model.parameters();
    out.base_bytes = model.bytes();
    for (const std::uint32_t rank : {4U, 8U, 16U, 32U, 64U}) {
        AdapterSize size;
        size.rank = rank;
        size.parameters = LoraLayout(model, rank, wanted).size;
        size.bytes_f16 = size.parameters * 2;
        size.bytes_int8 = size.parameters + size.parameters / 16;
        out.ranks.push_back(size);
    }
    return out;
}

Result<void> write_fresh_adapter(const std::filesystem::path& base, const std::string& modules,
                                 std::uint32_t rank, const std::filesystem::path& file) {
    TRY(const auto wanted, parse_modules(modules));
    TRY(const FrozenModel model, FrozenModel::open(base));
    const LoraLayout layout(model, rank, wanted);
    AdapterCard card;
    card.name = "fresh";
    card.architecture = model.shape().family;
    card.base = model.name();
    card.alpha = static_cast<float>(2 * rank);
    return write_adapter(file, layout, make_adapter(layout, 1), card);
}

}  // namespace molly::train
