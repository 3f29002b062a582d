#include "train/train.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "base/json.h"
#include "base/log.h"
#include "train/internal/full_run.h"
#include "train/internal/kernels.h"
#include "train/internal/lora_plan.h"
#include "train/internal/matmul.h"
#include "train/internal/run.h"
#include "train/internal/run_lock.h"

namespace molly::train {
namespace {

constexpr double evaluations_max = 40;         // of one run
constexpr double evaluation_share_max = 0.08;  // of a time budget

Result<void> check(const BaseOptions& options) {
    if (options.sources.empty()) {
        return fail(Error(ErrorCode::invalid_request, "name the text: --text FILE")
                        .italian("indica il testo: --text FILE")
                        .param("text"));
    }
    if (options.minutes <= 0 && options.tokens == 0) {
        return fail(Error(ErrorCode::invalid_request, "say how long: --minutes M or --tokens N")
                        .italian("indica per quanto: --minutes M oppure --tokens N")
                        .param("minutes"));
    }
    return check_no_run(options.out);
}

RunPlan plan_of(const BaseOptions& options, const Preset& preset, const Tokenizer& tokenizer) {
    RunPlan plan;
    plan.preset = options.preset;
    plan.name = options.name.empty() ? "molly-" + options.preset : options.name;
    plan.license = options.license;
    plan.shape = preset.shape;
    plan.shape.vocabulary = tokenizer.size();
    plan.vocabulary = tokenizer.fingerprint();
    plan.kernels = kernels().name;
    plan.seed = options.seed;
    plan.batch = options.batch == 0 ? preset.batch : options.batch;
    const std::uint32_t cores = std::max(1U, std::thread::hardware_concurrency());
    plan.threads = std::min(options.threads == 0 ? cores : options.threads, plan.batch);
    plan.at_once = plan.batch / plan.threads >= 2 ? 2 : 1;
    plan.patience = options.patience;
    plan.checkpoint_minutes = options.checkpoint_minutes;
    plan.optimizer.learning_rate = options.learning_rate > 0
                                       ? static_cast<float>(options.learning_rate)
                                       : preset.learning_rate;
    return plan;
}

/// Fixes the number of steps, and what follows from it.
void fix_steps(RunPlan& plan, double steps, double evaluations = evaluations_max) {
    plan.optimizer.steps = std::max<std::uint64_t>(static_cast<std::uint64_t>(steps), 1);
    const std::uint64_t count = plan.optimizer.steps;
    plan.optimizer.warm_up_steps = std::clamp<std::uint64_t>(count / 50, 1, 500);
    plan.evaluate_every =
        std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::ceil(steps / evaluations)));
    plan.report_every = std::max<std::uint64_t>(1, count / 500);
}

/// The steps that fit into a time, with evaluations on the way and a last one of every source.
/// Evaluating costs about a third of what training on as many tokens would.
void fix_time(RunPlan& plan, double seconds, double step_seconds) {
    const double evaluation = step_seconds * plan.evaluation_windows / plan.batch / 3;
    const double left = seconds - evaluation * static_cast<double>(plan.sources.size());
    const double evaluations =
        std::clamp(std::floor(evaluation_share_max * left / evaluation), 1.0, evaluations_max);
    fix_steps(plan, (left - evaluations * evaluation) / step_seconds, evaluations);
}

Result<Corpus> open_corpus(const std::filesystem::path& run, const std::vector<Source>& sources,
                           const Tokenizer& tokenizer, const Shape& shape, Watch& watch) {
    return Corpus::open(sources, tokenizer, shape.context, run / "tokens",
                        [&watch](std::uint64_t done, std::uint64_t total) {
                            watch.prepare("reading", done, total);
                        });
}

}  // namespace

Result<Outcome> train_base(const BaseOptions& options, Watch& watch) {
    TRY_DO(check(options));
    TRY(const Preset preset, find_preset(options.preset));
    TRY(const Tokenizer tokenizer, Tokenizer::load(options.tokenizer));
    const auto start = std::chrono::steady_clock::now();
    std::error_code error;
    std::filesystem::create_directories(options.out, error);
    TRY(const RunLock lock, RunLock::take(options.out));
    RunPlan plan = plan_of(options, preset, tokenizer);
    TRY(plan.precision, parse_precision(options.precision));
    TRY_DO(plan.shape.check());
    TRY(const Corpus corpus,
        open_corpus(options.out, options.sources, tokenizer, plan.shape, watch));
    for (std::size_t i = 0; i < options.sources.size(); ++i) {
        PlannedSource planned;
        planned.source = options.sources[i];
        planned.source.file = std::filesystem::absolute(planned.source.file);
        planned.hash = corpus.sources()[i].hash;
        plan.sources.push_back(std::move(planned));
    }
    TRY_DO(tokenizer.save(options.out / "tokenizer.gguf"));
    if (options.minutes > 0) {
        const double step_seconds = Run(options.out, plan, tokenizer, corpus, watch).measure_step();
        const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
        fix_time(plan, options.minutes * 60 - spent.count(), step_seconds);
    } else {
        fix_steps(plan, static_cast<double>(options.tokens / plan.tokens_per_step()));
    }
    TRY_DO(write_plan(options.out, plan));
    Run run(options.out, plan, tokenizer, corpus, watch);
    Checkpoint from;
    from.state = run.fresh();
    return run.go(std::move(from));
}

Result<Outcome> resume(const std::filesystem::path& folder, Watch& watch) {
    TRY(const RunPlan plan, read_plan(folder));
    TRY(const RunLock lock, RunLock::take(folder));
    TRY(const Tokenizer tokenizer, Tokenizer::load(folder / "tokenizer.gguf"));
    std::vector<Source> sources;
    for (const PlannedSource& planned : plan.sources)
        sources.push_back(planned.source);
    TRY(const Corpus corpus, open_corpus(folder, sources, tokenizer, plan.shape, watch));
    for (std::size_t i = 0; i < sources.size(); ++i) {
        if (corpus.sources()[i].hash == plan.sources[i].hash) continue;
        return fail(changed_since(sources[i].file));
    }
    if (plan.kernels != kernels().name) {
        log_event(LogLevel::warning, "train_other_processor",
                  {{"began_on", plan.kernels}, {"now", kernels().name}});
    }
    Run run(folder, plan, tokenizer, corpus, watch);
    auto from = read_checkpoint(folder, Layout(plan.shape).size);
    if (!from && from.error().code() != ErrorCode::not_found) return fail(from.error());
    if (!from) {
        from = Checkpoint();
        from->state = run.fresh();
    }
    return run.go(*std::move(from));
}

Result<RunFacts> read_facts(const std::filesystem::path& run) {
    const auto adapter = read_lora_plan(run);
    if (adapter) return RunFacts{RunKind::adapter, adapter->options.base};
    if (adapter.error().code() != ErrorCode::not_found) return fail(adapter.error());
    const auto full = read_full_plan(run);
    if (full) return RunFacts{RunKind::full, full->options.base};
    if (full.error().code() != ErrorCode::not_found) return fail(full.error());
    TRY_DO(read_plan(run));
    return RunFacts{};
}

namespace {

template <class Plan>
Status tuning_status(const Plan& plan, const std::string& method) {
    Status status;
    status.name = plan.options.name;
    status.preset = fmt::format("{}, {}", method, plan.options.base.filename().string());
    status.parameters = plan.parameters;
    status.last.steps = plan.optimizer.steps;
    return status;
}

/// What the plan says, whatever its kind.
Result<Status> planned(const std::filesystem::path& run) {
    TRY(const RunFacts facts, read_facts(run));
    if (facts.kind == RunKind::adapter) {
        TRY(const LoraPlan plan, read_lora_plan(run));
        return tuning_status(
            plan, fmt::format("{}, rank {}", plan.options.method == Method::pairs ? "dpo" : "lora",
                              plan.options.rank));
    }
    if (facts.kind == RunKind::full) {
        TRY(const FullPlan plan, read_full_plan(run));
        return tuning_status(plan, "full");
    }
    TRY(const RunPlan plan, read_plan(run));
    Status status;
    status.name = plan.name;
    status.preset = plan.preset;
    status.parameters = plan.shape.parameters();
    status.last.steps = plan.optimizer.steps;
    return status;
}

}  // namespace

Result<Status> read_status(const std::filesystem::path& run) {
    TRY(Status status, planned(run));
    status.running = RunLock::taken(run);
    status.checkpoint = checkpoint_step(run);
    status.finished = !status.running && std::filesystem::exists(run / "report.json");
    std::ifstream log(run / "log.jsonl");
    std::string line;
    std::string last;
    while (std::getline(log, line)) {
        if (!line.empty() && line.back() == '}') last = line;
    }
    const auto parsed = last.empty() ? Result<json::value>(json::value()) : parse_json(last);
    if (!parsed || !parsed->is_object()) return status;
    const auto number = [&](const char* key) {
        const json::value* value = parsed->get_object().if_contains(key);
        return value != nullptr && value->is_number() ? value->to_number<double>() : 0.0;
    };
    status.last.step = static_cast<std::uint64_t>(number("step"));
    status.last.tokens = static_cast<std::uint64_t>(number("tokens"));
    status.last.loss = number("loss");
    status.last.held_out_loss = number("held_out_loss");
    status.last.tokens_per_second = number("tokens_per_second");
    status.last.seconds_left = number("seconds_left");
    return status;
}

}  // namespace molly::train
