#pragma once
// Trains LoRA adapters on frozen, quantized GGUF models: on answers (SFT) or on preferences (DPO).
// A run lives in a folder: its plan, checkpoint, log and, at its end, the adapter. Blocking; one
// run per call, with threads of its own.
#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"
#include "train/examples.h"
#include "train/train.h"
#include "train/tuning.h"

namespace molly::train {

enum class Method : std::uint8_t { answers, pairs };  ///< SFT, DPO

/// `data` holds answers or pairs, as `method` says. Learning rate: 1e-3 for answers, 1e-4 for
/// pairs.
struct LoraOptions : TuningOptions {
    std::filesystem::path from;  ///< GGUF adapter to go on from; empty: a new one
    Method method = Method::answers;
    std::uint32_t rank = 16;
    double alpha = 0;             ///< 0: twice the rank
    double dropout = 0;           ///< share of a module's input that its adapter does not see
    std::string modules = "all";  ///< query, key, ..., attention, feed_forward, all
    double beta = 0.1;            ///< DPO: how far the adapter may move from the base
    double sft_weight = 0;        ///< DPO: of the better answer's own loss
    std::string tag;              ///< the caller's own words, which the outcome gives back
};

struct LoraOutcome {
    bool finished = false;  ///< false: stopped; `resume_lora` goes on
    Progress last;
    std::filesystem::path adapter;  ///< the GGUF file
    std::string name;
    Method method = Method::answers;
    std::filesystem::path base;
    std::string base_hash;        ///< SHA-256 of its file, hex
    double held_out_base = 0;     ///< held-out loss of the bare base
    double held_out_adapter = 0;  ///< and with the adapter
    double accuracy = 0;          ///< DPO: held-out pairs whose better answer gained more
    std::uint64_t held_out_rows = 0;
    ExampleFacts facts;
    std::uint64_t rows = 0;        ///< trained on
    std::uint64_t parameters = 0;  ///< of the adapter
    double learning_rate = 0;
    std::uint64_t seed = 0;
    std::string license;
    std::string tag;
};

/// Errors: invalid_request, not_found, conflict (the folder holds a run, or another process works
/// on it), unsupported (the model), corrupt, unavailable, exhausted (memory).
Result<LoraOutcome> train_lora(const LoraOptions& options, TextCoder& coder, Watch& watch);
/// Goes on from the last checkpoint, to the same bytes as a run that was never interrupted (on the
/// same kind of processor). Errors: as train_lora; not_found (no such run there); conflict (base or
/// data changed).
Result<LoraOutcome> resume_lora(const std::filesystem::path& run, TextCoder& coder, Watch& watch);

/// What an adapter on this base would weigh.
struct AdapterSize {
    std::uint32_t rank = 0;
    std::uint64_t parameters = 0;
    std::uint64_t bytes_f16 = 0;
    std::uint64_t bytes_int8 = 0;  ///< blocks of 32 with one f16 scale
};
struct AdapterSizes {
    std::string base;
    std::uint64_t base_parameters = 0;
    std::uint64_t base_bytes = 0;
    std::vector<AdapterSize> ranks;
};
/// For ranks 4 to 64 on these modules. Errors: as FrozenModel::open; invalid_request.
Result<AdapterSizes> adapter_sizes(const std::filesystem::path& base, const std::string& modules);

/// Writes an adapter that changes nothing yet. Errors: as adapter_sizes; unavailable.
Result<void> write_fresh_adapter(const std::filesystem::path& base, const std::string& modules,
                                 std::uint32_t rank, const std::filesystem::path& file);

}  // namespace molly::train
