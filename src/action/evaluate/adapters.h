#pragma once
// Do specialists pay? The bare base, the base with examples in its prompt, and the base with each
// task's adapter, on the same questions, with the same greedy decoding constrained to the same
// schema. Blocking.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "engine/engine.h"
#include "evaluate/grade.h"

namespace molly::evaluate {

struct AdapterTrial {
    std::filesystem::path base;      ///< GGUF model
    std::filesystem::path tasks;     ///< folder of panels
    std::filesystem::path adapters;  ///< holds TASK.gguf, and TASK-ROWS.gguf for the curve; may be
                                     ///< empty
    std::vector<std::string> only;   ///< tasks; empty: all
    std::uint32_t rows = 0;          ///< of each panel, 0: all
    std::uint32_t shots = 4;         ///< examples in the prompt, fewer where they do not fit
    std::uint32_t foreign_rows = 100;  ///< of another task, to see what an adapter spoils; 0: none
    std::uint32_t threads = 0;         ///< 0: the cores that are free
    engine::AdapterNumbers numbers = engine::AdapterNumbers::f16;
};

/// How one way of asking did on one panel.
struct Score {
    Estimate exact;
    double partial = 0;          ///< mean of Grade::partial
    std::uint32_t too_long = 0;  ///< questions that did not fit, counted as wrong
    double prompt_tokens = 0;    ///< mean
    std::map<std::string, Estimate> slices;
};

/// Another task's questions with this task's adapter.
struct Foreign {
    std::string task;
    double base = 0;  ///< exact share without the adapter
    double with = 0;
    Estimate change;
};

struct PanelReport {
    std::string name;
    std::uint32_t rows = 0;
    Score base;
    Score shots;
    double shots_mean = 0;  ///< examples that fitted
    std::optional<Score> specialist;
    std::optional<Estimate> gain;             ///< specialist over the bare base
    std::optional<Estimate> gain_shots;       ///< specialist over the base with examples
    std::map<std::uint32_t, Estimate> curve;  ///< exact share by rows learned from
    std::optional<Foreign> foreign;
};

struct AdapterReport {
    std::string base;  ///< name of the model
    std::string base_hash;
    std::uint64_t parameters = 0;
    std::vector<PanelReport> panels;
    std::optional<Estimate> gain_mean;  ///< over panels with a specialist
    std::optional<Estimate> gain_shots_mean;
    double seconds = 0;
};

/// Hears what is being asked and how far it is.
using TrialProgress =
    std::function<void(std::string_view what, std::uint64_t done, std::uint64_t total)>;

/// Errors: those of read_panels and Engine::open; not_found (a wanted adapter).
Result<AdapterReport> try_adapters(const AdapterTrial& trial, const TrialProgress& progress);

json::value to_json(const AdapterReport& report);

}  // namespace molly::evaluate
