#include "evaluate/adapters.h"

namespace molly::evaluate {
namespace {

json::object shape_of(const Estimate& estimate) {
    return {{"mean", estimate.mean}, {"low", estimate.low}, {"high", estimate.high}};
}

json::object shape_of(const Score& score) {
    json::object out;
    out["exact"] = shape_of(score.exact);
    out["partial"] = score.partial;
    out["too_long"] = score.too_long;
    out["prompt_tokens"] = score.prompt_tokens;
    if (!score.slices.empty()) {
        json::object slices;
        for (const auto& [name, estimate] : score.slices)
            slices[name] = shape_of(estimate);
        out["slices"] = std::move(slices);
    }
    return out;
}

json::object shape_of(const PanelReport& panel) {
    json::object out;
    out["task"] = panel.name;
    out["rows"] = panel.rows;
    out["base"] = shape_of(panel.base);
    json::object shots = shape_of(panel.shots);
    shots["shots"] = panel.shots_mean;
    out["shots"] = std::move(shots);
    if (panel.specialist) out["specialist"] = shape_of(*panel.specialist);
    if (panel.gain) out["gain"] = shape_of(*panel.gain);
    if (panel.gain_shots) out["gain_over_shots"] = shape_of(*panel.gain_shots);
    if (!panel.curve.empty()) {
        json::array curve;
        for (const auto& [rows, exact] : panel.curve)
            curve.push_back(json::object{{"rows", rows}, {"exact", shape_of(exact)}});
        out["curve"] = std::move(curve);
    }
    if (panel.foreign) {
        out["out_of_domain"] = json::object{{"task", panel.foreign->task},
                                            {"base", panel.foreign->base},
                                            {"with", panel.foreign->with},
                                            {"change", shape_of(panel.foreign->change)}};
    }
    return out;
}

}  // namespace

json::value to_json(const AdapterReport& report) {
    json::object out;
    out["base"] = json::object{
        {"name", report.base}, {"sha256", report.base_hash}, {"parameters", report.parameters}};
    json::array panels;
    for (const PanelReport& panel : report.panels)
        panels.push_back(shape_of(panel));
    out["tasks"] = std::move(panels);
    if (report.gain_mean) {
        out["gain_mean"] = report.gain_mean->mean;
        out["gain_mean_interval"] = shape_of(*report.gain_mean);
    }
    if (report.gain_shots_mean) {
        out["gain_over_shots_mean"] = report.gain_shots_mean->mean;
        out["gain_over_shots_mean_interval"] = shape_of(*report.gain_shots_mean);
    }
    out["seconds"] = report.seconds;
    return out;
}

}  // namespace molly::evaluate
