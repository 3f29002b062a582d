#include "train/internal/run_plan.h"

#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "train/internal/tuning_plan.h"
#include "train/internal/whole_file.h"

namespace molly::train {
namespace {

/// Visits every field that is a number, for writing and for reading.
template <class Plan, class Visit>
void each_number(Plan& plan, const Visit& visit) {
    visit("vocabulary_size", plan.shape.vocabulary);
    visit("embed", plan.shape.embed);
    visit("layers", plan.shape.layers);
    visit("heads", plan.shape.heads);
    visit("key_heads", plan.shape.key_heads);
    visit("feed_forward", plan.shape.feed_forward);
    visit("context", plan.shape.context);
    visit("rope_base", plan.shape.rope_base);
    visit("norm_epsilon", plan.shape.norm_epsilon);
    visit("seed", plan.seed);
    visit("threads", plan.threads);
    visit("batch", plan.batch);
    visit("at_once", plan.at_once);
    visit("evaluate_every", plan.evaluate_every);
    visit("report_every", plan.report_every);
    visit("evaluation_windows", plan.evaluation_windows);
    visit("patience", plan.patience);
    visit("checkpoint_minutes", plan.checkpoint_minutes);
    visit("z_loss", plan.optimizer.z_loss);
    each_optimizer_field(plan.optimizer, visit);
}

template <class Plan, class Visit>
void each_text(Plan& plan, const Visit& visit) {
    visit("name", plan.name);
    visit("preset", plan.preset);
    visit("license", plan.license);
    visit("vocabulary", plan.vocabulary);
    visit("kernels", plan.kernels);
}

}  // namespace

Result<void> write_plan(const std::filesystem::path& run, const RunPlan& plan) {
    json::object out;
    out["version"] = 1;
    out["kind"] = "base";
    out["tied"] = plan.shape.tied;
    out["precision"] = name_of(plan.precision);
    each_text(plan, [&out](const char* key, const std::string& text) { out[key] = text; });
    each_number(plan, [&out](const char* key, auto value) { out[key] = value; });
    json::array sources;
    for (const PlannedSource& planned : plan.sources) {
        sources.push_back(json::object{{"file", planned.source.file.string()},
                                       {"weight", planned.source.weight},
                                       {"sha256", planned.hash}});
    }
    out["sources"] = std::move(sources);
    return write_whole(run / "run.json", to_text(json::value(std::move(out))) + "\n");
}

Result<RunPlan> read_plan(const std::filesystem::path& run) {
    const auto file = run / "run.json";
    std::ifstream stream(file);
    if (!stream) {
        return fail(Error(ErrorCode::not_found, fmt::format("{} holds no run", run.string()))
                        .italian(fmt::format("in {} non c'è alcun addestramento", run.string())));
    }
    const std::string text{std::istreambuf_iterator<char>(stream),
                           std::istreambuf_iterator<char>()};
    const auto parsed = parse_json(text);
    if (!parsed || !parsed->is_object()) return fail(damaged_plan(run));
    const json::object& in = parsed->get_object();
    RunPlan plan;
    bool whole = true;
    const auto read = [&](const char* key, auto& out) {
        whole = read_field(in, key, out) && whole;
    };
    each_text(plan, read);
    each_number(plan, read);
    const json::value* precision = in.if_contains("precision");
    if (precision != nullptr && precision->is_string()) {
        const auto known = parse_precision(std::string(precision->get_string()));
        if (!known) return fail(damaged_plan(run));
        plan.precision = *known;
    }
    const json::value* tied = in.if_contains("tied");
    const json::value* sources = in.if_contains("sources");
    whole =
        whole && tied != nullptr && tied->is_bool() && sources != nullptr && sources->is_array();
    if (!whole || !plan.shape.check()) return fail(damaged_plan(run));
    plan.shape.tied = tied->get_bool();
    for (const json::value& entry : sources->get_array()) {
        const json::object* source = entry.if_object();
        const auto* name = source == nullptr ? nullptr : source->if_contains("file");
        const auto* weight = source == nullptr ? nullptr : source->if_contains("weight");
        const auto* hash = source == nullptr ? nullptr : source->if_contains("sha256");
        if (name == nullptr || !name->is_string() || weight == nullptr || !weight->is_number() ||
            hash == nullptr || !hash->is_string()) {
            return fail(damaged_plan(run));
        }
        PlannedSource planned;
        planned.source.file = std::string(name->get_string());
        planned.source.weight = weight->to_number<double>();
        planned.hash = std::string(hash->get_string());
        plan.sources.push_back(std::move(planned));
    }
    return plan;
}

}  // namespace molly::train
