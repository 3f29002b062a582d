#include "train/internal/lora_plan.h"

#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "train/internal/plan_field.h"
#include "train/internal/whole_file.h"

namespace molly::train {
namespace {

/// Visits every field, for writing and for reading.
template <class Plan, class Visit>
void each_field(Plan& plan, const Visit& visit) {
    auto& options = plan.options;
    visit("name", options.name);
    visit("modules", options.modules);
    visit("license", options.license);
    visit("tag", options.tag);
    visit("rank", options.rank);
    visit("alpha", options.alpha);
    visit("dropout", options.dropout);
    visit("batch", options.batch);
    visit("context", options.context);
    visit("beta", options.beta);
    visit("sft_weight", options.sft_weight);
    visit("held_out_share", options.held_out_share);
    visit("seed", options.seed);
    visit("patience", options.patience);
    visit("checkpoint_minutes", options.checkpoint_minutes);
    visit("base_hash", plan.base_hash);
    visit("data_hash", plan.data_hash);
    visit("held_out_hash", plan.held_out_hash);
    visit("from_hash", plan.from_hash);
    visit("vocabulary", plan.vocabulary);
    visit("kernels", plan.kernels);
    visit("threads", plan.threads);
    visit("rows_at_once", plan.rows_at_once);
    visit("parameters", plan.parameters);
    visit("evaluate_every", plan.evaluate_every);
    visit("report_every", plan.report_every);
    visit("learning_rate", plan.optimizer.learning_rate);
    visit("last_rate_fraction", plan.optimizer.last_rate_fraction);
    visit("decay", plan.optimizer.decay);
    visit("beta_1", plan.optimizer.beta_1);
    visit("beta_2", plan.optimizer.beta_2);
    visit("gradient_norm_max", plan.optimizer.gradient_norm_max);
    visit("warm_up_steps", plan.optimizer.warm_up_steps);
    visit("steps", plan.optimizer.steps);
}

template <class Plan, class Visit>
void each_path(Plan& plan, const Visit& visit) {
    visit("base", plan.options.base);
    visit("data", plan.options.data);
    visit("held_out", plan.options.held_out);
    visit("from", plan.options.from);
}

}  // namespace

Result<void> write_plan(const std::filesystem::path& run, const LoraPlan& plan) {
    json::object out;
    out["version"] = 1;
    out["kind"] = "lora";
    out["method"] = plan.options.method == Method::pairs ? "dpo" : "sft";
    out["precision"] = name_of(plan.precision);
    each_field(plan, [&out](const char* key, const auto& value) { out[key] = value; });
    each_path(plan, [&out](const char* key, const std::filesystem::path& path) {
        out[key] = path.string();
    });
    return write_whole(run / "run.json", to_text(json::value(std::move(out))) + "\n");
}

Result<LoraPlan> read_lora_plan(const std::filesystem::path& run) {
    const auto file = run / "run.json";
    std::ifstream stream(file);
    const std::string text{std::istreambuf_iterator<char>(stream),
                           std::istreambuf_iterator<char>()};
    const auto parsed = text.empty() ? Result<json::value>(json::value()) : parse_json(text);
    const json::object* in = parsed ? parsed->if_object() : nullptr;
    std::string kind;
    std::string method;
    std::string precision;
    if (text.empty() || (in != nullptr && read_field(*in, "kind", kind) && kind != "lora")) {
        return fail(Error(ErrorCode::not_found,
                          fmt::format("{} holds no training of an adapter", run.string()))
                        .italian(fmt::format("in {} non c'è l'addestramento di un adattatore",
                                             run.string())));
    }
    LoraPlan plan;
    bool whole = in != nullptr && read_field(*in, "method", method) &&
                 read_field(*in, "precision", precision);
    if (whole) {
        each_field(plan,
                   [&](const char* key, auto& out) { whole = read_field(*in, key, out) && whole; });
        each_path(plan, [&](const char* key, std::filesystem::path& out) {
            std::string path;
            whole = read_field(*in, key, path) && whole;
            out = path;
        });
    }
    const auto known = parse_precision(precision);
    if (!whole || !known || plan.options.rank == 0 || plan.optimizer.steps == 0) {
        return fail(Error(
            ErrorCode::corrupt,
            fmt::format("{} is damaged; start the run anew in another folder", file.string())));
    }
    plan.precision = *known;
    plan.options.method = method == "dpo" ? Method::pairs : Method::answers;
    plan.options.out = run;
    return plan;
}

}  // namespace molly::train
