#pragma once
// Trains all weights of an existing small model on answers (full fine-tuning). A run lives in a
// folder: its plan, checkpoint, log and, at its end, the model. Blocking; one run per call, with
// threads of its own.
#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"
#include "train/examples.h"
#include "train/train.h"
#include "train/tuning.h"

namespace molly::train {

/// Learning rate: 5e-4.
struct FullOptions : TuningOptions {};

struct FullOutcome {
    bool finished = false;  ///< false: stopped; `resume_full` goes on
    Progress last;
    std::filesystem::path model;  ///< f16; the q8_0 file lies beside it
    double held_out_before = 0;   ///< held-out loss of the base
    double held_out_after = 0;
    std::uint64_t held_out_rows = 0;
    std::uint64_t rows = 0;  ///< trained on
    std::uint64_t parameters = 0;
    ExampleFacts facts;
};

/// The base is of the llama family, without parts that pre-training lacks; any type of weights.
/// Errors: invalid_request, not_found, conflict (the folder holds a run, or another process works
/// on it), unsupported (the model), corrupt, unavailable, exhausted (memory).
Result<FullOutcome> train_full(const FullOptions& options, TextCoder& coder, Watch& watch);
/// Goes on from the last checkpoint, to the same bytes as a run that was never interrupted (on the
/// same kind of processor). Errors: as train_full; not_found (no such run there); conflict (base or
/// data changed).
Result<FullOutcome> resume_full(const std::filesystem::path& run, TextCoder& coder, Watch& watch);

}  // namespace molly::train
