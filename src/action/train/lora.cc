#include "train/lora.h"

#include <algorithm>
#include <cmath>
#include <thread>

#include <fmt/format.h>

#include "base/log.h"
#include "seal/seal.h"
#include "train/internal/adapter_file.h"
#include "train/internal/kernels.h"
#include "train/internal/lora_run.h"
#include "train/internal/packing.h"
#include "train/internal/run_lock.h"

namespace molly::train {
namespace {

constexpr std::uint32_t context_cap = 2048;     // a longer row costs memory that few machines have
constexpr std::uint32_t context_wanted = 256;   // shorter rows multiply badly
constexpr std::uint32_t tokens_at_once = 2048;  // of one pass
constexpr double examples_per_step = 4;         // hundreds of rows want many small steps
constexpr std::uint32_t rank_max = 256;

Result<void> check(const LoraOptions& options) {
    const auto wrong = [](const char* param, const char* english, const char* italian) {
        return fail(Error(ErrorCode::invalid_request, english).italian(italian).param(param));
    };
    if (options.rank == 0 || options.rank > rank_max)
        return wrong("rank", "the rank is 1 to 256", "il rango va da 1 a 256");
    if (options.dropout < 0 || options.dropout >= 1)
        return wrong("dropout", "dropout is a share from 0 to below 1",
                     "il dropout è una quota da 0 a meno di 1");
    if (options.steps == 0 && !(options.epochs > 0))
        return wrong("epochs", "say how long: --epochs E or --steps N",
                     "indica per quanto: --epochs E oppure --steps N");
    if (options.held_out_share < 0 || options.held_out_share > 0.5)
        return wrong("held-out-share", "the held-out share is 0 to 0.5",
                     "la quota di controllo va da 0 a 0,5");
    if (options.method == Method::pairs && !(options.beta > 0))
        return wrong("beta", "beta is above 0", "beta è maggiore di 0");
    TRY_DO(check_no_run(options.out));
    TRY_DO(parse_modules(options.modules));
    return {};
}

Result<std::string> hash_of(const std::filesystem::path& file) {
    if (file.empty()) return std::string();
    TRY(const seal::Hash hash, seal::sha256_file(file));
    return seal::to_hex(hash);
}

std::uint32_t context_limit(const FrozenModel& model) {
    const std::uint32_t trained = model.shape().context_max;
    return trained == 0 ? context_cap : std::min(trained, context_cap);
}

/// Fills in what the options leave to the data and the machine.
void fill_in(LoraPlan& plan, const FrozenModel& model, const LoraMaterial& material) {
    LoraOptions& options = plan.options;
    const std::uint32_t longest = (material.longest() + 31) / 32 * 32;
    if (options.context == 0)
        options.context = std::min(context_limit(model), std::max(longest, context_wanted));
    if (options.alpha <= 0) options.alpha = 2.0 * options.rank;
    const bool pairs = options.method == Method::pairs;
    std::vector<const Sequence*> sequences;
    for (const Example* example : material.training)
        sequences.push_back(&example->better);
    const auto examples = static_cast<double>(sequences.size());
    const auto rows = static_cast<double>(Packing(std::move(sequences), options.context).rows());
    if (options.batch == 0) {
        const double wanted = pairs ? 8 : std::round(examples_per_step * rows / examples);
        options.batch = static_cast<std::uint32_t>(std::clamp(wanted, 1.0, 8.0));
    }
    plan.rows_at_once = std::max(1U, tokens_at_once / options.context);
    if (!pairs) plan.rows_at_once = std::min(plan.rows_at_once, options.batch);
    OptimizerOptions& optimizer = plan.optimizer;
    const double epoch = (pairs ? examples : rows) / options.batch;
    optimizer.steps =
        options.steps > 0
            ? options.steps
            : static_cast<std::uint64_t>(std::max(1.0, std::ceil(options.epochs * epoch)));
    optimizer.warm_up_steps = std::clamp<std::uint64_t>(optimizer.steps / 20, 1, 100);
    optimizer.learning_rate = options.learning_rate > 0 ? static_cast<float>(options.learning_rate)
                              : pairs                   ? 1e-4F
                                                        : 1e-3F;
    optimizer.decay = 0;
    optimizer.beta_2 = 0.999F;
    plan.evaluate_every = std::max<std::uint64_t>(1, optimizer.steps / 12);
    plan.report_every = std::max<std::uint64_t>(1, optimizer.steps / 100);
}

/// Changed files would make another adapter than the one that was begun.
Result<void> check_unchanged(const LoraPlan& plan) {
    const std::pair<const std::filesystem::path&, const std::string&> files[] = {
        {plan.options.base, plan.base_hash},
        {plan.options.data, plan.data_hash},
        {plan.options.held_out, plan.held_out_hash},
        {plan.options.from, plan.from_hash}};
    for (const auto& [file, hash] : files) {
        TRY(const std::string now, hash_of(file));
        if (now != hash) return fail(changed_since(file));
    }
    return {};
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
    TRY_DO(check(options));
    LoraPlan plan;
    plan.options = options;
    TRY(plan.precision, parse_precision(options.precision));
    for (auto* file :
         {&plan.options.base, &plan.options.data, &plan.options.held_out, &plan.options.from})
        if (!file->empty()) *file = std::filesystem::absolute(*file);
    watch.prepare("reading", 0, 0);
    TRY(const FrozenModel model, FrozenModel::open(plan.options.base));
    TRY(const LoraMaterial material, LoraMaterial::read(plan.options, coder, context_limit(model)));
    TRY(plan.base_hash, hash_of(plan.options.base));
    TRY(plan.data_hash, hash_of(plan.options.data));
    TRY(plan.held_out_hash, hash_of(plan.options.held_out));
    TRY(plan.from_hash, hash_of(plan.options.from));
    plan.vocabulary = coder.fingerprint();
    plan.kernels = kernels().name;
    plan.threads =
        options.threads != 0 ? options.threads : std::max(1U, std::thread::hardware_concurrency());
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
    TRY_DO(check_unchanged(plan));
    TRY(const FrozenModel model, FrozenModel::open(plan.options.base));
    TRY(const LoraMaterial material, LoraMaterial::read(plan.options, coder, context_limit(model)));
    if (plan.kernels != kernels().name) {
        log_event(LogLevel::warning, "train_other_processor",
                  {{"began_on", plan.kernels}, {"now", kernels().name}});
    }
    LoraRun run(folder, plan, model, material, watch);
    auto from = read_checkpoint(folder, run.layout().size);
    if (!from && from.error().code() != ErrorCode::not_found) return fail(from.error());
    if (!from) from = begin(run, plan);
    if (!from) return fail(from.error());
    return run.go(*std::move(from));
}

Result<std::filesystem::path> lora_base(const std::filesystem::path& run) {
    auto plan = read_lora_plan(run);
    if (plan) return plan->options.base;
    if (plan.error().code() == ErrorCode::not_found && std::filesystem::exists(run / "run.json"))
        return std::filesystem::path();
    return fail(plan.error());
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
