#include "train/internal/lora_plan.h"

#include "train/internal/whole_file.h"

namespace molly::train {
namespace {

/// Visits what an adapter's run has beside other tuning, for writing and for reading.
template <class Plan, class Visit>
void each_field(Plan& plan, const Visit& visit) {
    auto& options = plan.options;
    visit("modules", options.modules);
    visit("tag", options.tag);
    visit("rank", options.rank);
    visit("alpha", options.alpha);
    visit("dropout", options.dropout);
    visit("beta", options.beta);
    visit("sft_weight", options.sft_weight);
    visit("from_hash", plan.from_hash);
}

}  // namespace

Result<void> write_plan(const std::filesystem::path& run, const LoraPlan& plan) {
    json::object out = tuning_json("lora", plan.options, plan);
    out["method"] = plan.options.method == Method::pairs ? "dpo" : "sft";
    out["from"] = plan.options.from.string();
    each_field(plan, [&out](const char* key, const auto& value) { out[key] = value; });
    return write_whole(run / "run.json", to_text(json::value(std::move(out))) + "\n");
}

Result<LoraPlan> read_lora_plan(const std::filesystem::path& run) {
    TRY(const json::object in, read_plan_file(run, "lora"));
    LoraPlan plan;
    std::string method;
    std::string from;
    bool whole = read_tuning(in, plan.options, plan) && read_field(in, "method", method) &&
                 read_field(in, "from", from);
    each_field(plan,
               [&](const char* key, auto& out) { whole = read_field(in, key, out) && whole; });
    if (!whole || plan.options.rank == 0) return fail(damaged_plan(run));
    plan.options.method = method == "dpo" ? Method::pairs : Method::answers;
    plan.options.from = from;
    plan.options.out = run;
    return plan;
}

}  // namespace molly::train
