#include "train/internal/tuning_plan.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <thread>

#include <fmt/format.h>

#include "base/log.h"
#include "seal/seal.h"
#include "train/internal/kernels.h"
#include "train/internal/run_lock.h"

namespace molly::train {

Result<void> check(const TuningOptions& options) {
    const auto wrong = [](const char* param, const char* english, const char* italian) {
        return fail(Error(ErrorCode::invalid_request, english).italian(italian).param(param));
    };
    if (options.steps == 0 && !(options.epochs > 0))
        return wrong("epochs", "say how long: --epochs E or --steps N",
                     "indica per quanto: --epochs E oppure --steps N");
    if (options.held_out_share < 0 || options.held_out_share > 0.5)
        return wrong("held-out-share", "the held-out share is 0 to 0.5",
                     "la quota di controllo va da 0 a 0,5");
    TRY_DO(parse_precision(options.precision));
    return check_no_run(options.out);
}

Result<std::string> hash_of(const std::filesystem::path& file) {
    if (file.empty()) return std::string();
    TRY(const seal::Hash hash, seal::sha256_file(file));
    return seal::to_hex(hash);
}

Result<void> fill_in_facts(TuningOptions& options, TuningPlan& plan, const TextCoder& coder) {
    TRY(plan.precision, parse_precision(options.precision));
    for (auto* file : {&options.base, &options.data, &options.held_out})
        if (!file->empty()) *file = std::filesystem::absolute(*file);
    TRY(plan.base_hash, hash_of(options.base));
    TRY(plan.data_hash, hash_of(options.data));
    TRY(plan.held_out_hash, hash_of(options.held_out));
    plan.vocabulary = coder.fingerprint();
    plan.kernels = kernels().name;
    plan.threads =
        options.threads != 0 ? options.threads : std::max(1U, std::thread::hardware_concurrency());
    return {};
}

Result<void> check_unchanged(const TuningOptions& options, const TuningPlan& plan) {
    const std::pair<const std::filesystem::path&, const std::string&> files[] = {
        {options.base, plan.base_hash},
        {options.data, plan.data_hash},
        {options.held_out, plan.held_out_hash}};
    for (const auto& [file, hash] : files) {
        TRY(const std::string now, hash_of(file));
        if (now != hash) return fail(changed_since(file));
    }
    return {};
}

void warn_other_processor(const TuningPlan& plan) {
    if (plan.kernels == kernels().name) return;
    log_event(LogLevel::warning, "train_other_processor",
              {{"began_on", plan.kernels}, {"now", kernels().name}});
}

void fix_steps(const TuningOptions& options, TuningPlan& plan, double per_epoch) {
    OptimizerOptions& optimizer = plan.optimizer;
    optimizer.steps =
        options.steps > 0
            ? options.steps
            : static_cast<std::uint64_t>(std::max(1.0, std::ceil(options.epochs * per_epoch)));
    optimizer.warm_up_steps = std::clamp<std::uint64_t>(optimizer.steps / 20, 1, 100);
    plan.evaluate_every = std::max<std::uint64_t>(1, optimizer.steps / 12);
    plan.report_every = std::max<std::uint64_t>(1, optimizer.steps / 100);
}

LoopPlan loop_of(const TuningOptions& options, const TuningPlan& plan, bool held_out) {
    LoopPlan loop;
    loop.steps = plan.optimizer.steps;
    loop.evaluate_every = plan.evaluate_every;
    loop.report_every = plan.report_every;
    loop.patience = held_out ? options.patience : 0;
    loop.checkpoint_minutes = options.checkpoint_minutes;
    loop.tokens_per_step = std::uint64_t{options.batch} * options.context;
    return loop;
}

Error damaged_plan(const std::filesystem::path& run) {
    return Error(ErrorCode::corrupt, fmt::format("{} is damaged; start the run anew in another "
                                                 "folder",
                                                 (run / "run.json").string()));
}

Result<json::object> read_plan_file(const std::filesystem::path& run, std::string_view kind) {
    std::ifstream stream(run / "run.json");
    const std::string text{std::istreambuf_iterator<char>(stream),
                           std::istreambuf_iterator<char>()};
    if (text.empty()) {
        return fail(Error(ErrorCode::not_found, fmt::format("{} holds no run", run.string()))
                        .italian(fmt::format("in {} non c'è alcun addestramento", run.string())));
    }
    auto parsed = parse_json(text);
    if (!parsed || !parsed->is_object()) return fail(damaged_plan(run));
    std::string found;
    if (!read_field(parsed->get_object(), "kind", found)) return fail(damaged_plan(run));
    if (found != kind) {
        return fail(Error(ErrorCode::not_found,
                          fmt::format("{} holds a run of another kind: {}", run.string(), found))
                        .italian(fmt::format("in {} c'è un addestramento di un altro tipo: {}",
                                             run.string(), found)));
    }
    return std::move(parsed->get_object());
}

}  // namespace molly::train
