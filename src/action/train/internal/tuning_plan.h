#pragma once
// What the plans of adapter and whole-model runs have in common: what they were begun with, how
// their steps go, and run.json.
#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"
#include "train/examples.h"
#include "train/internal/loop.h"
#include "train/internal/matmul.h"
#include "train/internal/optimizer.h"
#include "train/internal/plan_field.h"
#include "train/train.h"
#include "train/tuning.h"

namespace molly::train {

struct TuningPlan {
    std::string base_hash, data_hash, held_out_hash, vocabulary, kernels;
    Precision precision = Precision::f32;
    std::uint32_t threads = 1;
    std::uint32_t rows_at_once = 1;
    std::uint64_t parameters = 0;  ///< that are trained
    std::uint64_t evaluate_every = 1;
    std::uint64_t report_every = 1;
    OptimizerOptions optimizer;
};

/// Visits the fields that every kind of run sets, for writing and for reading.
template <class Optimizer, class Visit>
void each_optimizer_field(Optimizer& optimizer, const Visit& visit) {
    visit("learning_rate", optimizer.learning_rate);
    visit("last_rate_fraction", optimizer.last_rate_fraction);
    visit("decay", optimizer.decay);
    visit("beta_1", optimizer.beta_1);
    visit("beta_2", optimizer.beta_2);
    visit("gradient_norm_max", optimizer.gradient_norm_max);
    visit("warm_up_steps", optimizer.warm_up_steps);
    visit("steps", optimizer.steps);
}

/// Visits every field of the options and the plan that is text or a number.
template <class Options, class Plan, class Visit>
void each_tuning_field(Options& options, Plan& plan, const Visit& visit) {
    visit("name", options.name);
    visit("license", options.license);
    visit("batch", options.batch);
    visit("context", options.context);
    visit("held_out_share", options.held_out_share);
    visit("seed", options.seed);
    visit("patience", options.patience);
    visit("checkpoint_minutes", options.checkpoint_minutes);
    visit("base_hash", plan.base_hash);
    visit("data_hash", plan.data_hash);
    visit("held_out_hash", plan.held_out_hash);
    visit("vocabulary", plan.vocabulary);
    visit("kernels", plan.kernels);
    visit("threads", plan.threads);
    visit("rows_at_once", plan.rows_at_once);
    visit("parameters", plan.parameters);
    visit("evaluate_every", plan.evaluate_every);
    visit("report_every", plan.report_every);
    each_optimizer_field(plan.optimizer, visit);
}

template <class Options, class Visit>
void each_tuning_path(Options& options, const Visit& visit) {
    visit("base", options.base);
    visit("data", options.data);
    visit("held_out", options.held_out);
}

/// Errors: invalid_request, conflict (the folder holds a run).
Result<void> check(const TuningOptions& options);
/// Hashes the files that the run is begun with, and asks the machine. Errors: not_found,
/// unavailable, invalid_request (the precision).
Result<void> fill_in_facts(TuningOptions& options, TuningPlan& plan, const TextCoder& coder);
/// Changed files would make something else than what was begun. Errors: conflict, not_found.
Result<void> check_unchanged(const TuningOptions& options, const TuningPlan& plan);
/// Says so in the log when the run was begun on another kind of processor.
void warn_other_processor(const TuningPlan& plan);
/// SHA-256 of a file, hex; of no file: empty.
Result<std::string> hash_of(const std::filesystem::path& file);
/// Steps, evaluations and reports of `per_epoch` steps an epoch.
void fix_steps(const TuningOptions& options, TuningPlan& plan, double per_epoch);
LoopPlan loop_of(const TuningOptions& options, const TuningPlan& plan, bool held_out);

/// The members of run.json, when it is of this kind. Errors: not_found (no run, or another kind),
/// corrupt.
Result<json::object> read_plan_file(const std::filesystem::path& run, std::string_view kind);
Error damaged_plan(const std::filesystem::path& run);

/// Reads options and plan out of run.json's members; false: something is missing.
template <class Options, class Plan>
bool read_tuning(const json::object& in, Options& options, Plan& plan) {
    std::string precision;
    bool whole = read_field(in, "precision", precision);
    each_tuning_field(options, plan, [&](const char* key, auto& out) {
        whole = read_field(in, key, out) && whole;
    });
    each_tuning_path(options, [&](const char* key, std::filesystem::path& out) {
        std::string path;
        whole = read_field(in, key, path) && whole;
        out = path;
    });
    const auto known = parse_precision(precision);
    if (known) plan.precision = *known;
    return whole && known && plan.optimizer.steps > 0;
}

/// The members of run.json that both kinds have.
template <class Options, class Plan>
json::object tuning_json(std::string_view kind, const Options& options, const Plan& plan) {
    json::object out;
    out["version"] = 1;
    out["kind"] = kind;
    out["precision"] = name_of(plan.precision);
    each_tuning_field(options, plan,
                      [&out](const char* key, const auto& value) { out[key] = value; });
    each_tuning_path(options, [&out](const char* key, const std::filesystem::path& path) {
        out[key] = path.string();
    });
    return out;
}

}  // namespace molly::train
