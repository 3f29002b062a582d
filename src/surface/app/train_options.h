#pragma once
// The options that training on rows takes, whether it makes an adapter or a model.
#include <filesystem>
#include <string>

#include "app/commands.h"
#include "app/places.h"
#include "app/terminal.h"
#include "train/examples.h"
#include "train/tuning.h"

namespace molly::app {

struct TuningRun {
    std::string base, data, held_out, out, name, license;
    std::string precision = "auto";
    double epochs = 3, steps = 0, learning_rate = 0;
    double held_out_share = 0.1, checkpoint_minutes = 2;
    std::uint32_t batch = 0, context = 0, seed = 1, threads = 0, patience = 3;

    /// Everything but base and out, which need the data folder.
    void give(train::TuningOptions& options) const;
};

/// Declares them; `run` must live as long as the command.
void declare_tuning(Command& command, TuningRun& run, Text data, Text name);

/// The folder that was asked for, or one of its own for every run of a name.
std::filesystem::path run_folder(const Places& places, const TuningRun& run);
void tell_stopped(const Terminal& terminal, const std::filesystem::path& run);
/// Says how many rows were too long, if any.
void tell_left_out(const Terminal& terminal, const train::ExampleFacts& facts);

}  // namespace molly::app
