#pragma once
// What every run that learns from rows is told, whether it trains an adapter or the whole model.
#include <cstdint>
#include <filesystem>
#include <string>

namespace molly::train {

struct TuningOptions {
    std::filesystem::path base;      ///< GGUF model
    std::filesystem::path data;      ///< JSONL
    std::filesystem::path held_out;  ///< JSONL; empty: a share of `data`
    std::filesystem::path out;       ///< the run's folder; it must not hold a run yet
    std::string name;                ///< of what is made
    double epochs = 3;
    std::uint64_t steps = 0;    ///< instead of epochs
    std::uint32_t batch = 0;    ///< rows, or pairs, of one step; 0: what suits the data
    std::uint32_t context = 0;  ///< tokens of a row; 0: the longest example, up to the model's
    double learning_rate = 0;   ///< peak; 0: the method's
    double held_out_share = 0.1;
    std::string precision = "auto";  ///< f32, bf16, or auto: bf16 where the processor has it
    std::string license;             ///< of the weights
    std::uint64_t seed = 1;
    std::uint32_t threads = 0;   ///< 0: one per core
    std::uint32_t patience = 3;  ///< evaluations without a better one before it ends; 0: never
    double checkpoint_minutes = 2;
};

}  // namespace molly::train
