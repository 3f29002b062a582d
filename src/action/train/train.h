#pragma once
// Trains models on this device: vocabularies from text, and whole models from random weights. A run
// lives in a folder: its plan, token cache, checkpoint, log and, at its end, the model. Blocking;
// one run per call, with threads of its own.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace molly::train {

/// One text file and how often it is read in an epoch (0.5: half of it).
struct Source {
    std::filesystem::path file;
    double weight = 1;
};

struct BaseOptions {
    std::vector<Source> sources;
    std::filesystem::path tokenizer;
    std::filesystem::path out;  ///< the run's folder; it must not hold a run yet
    std::string preset = "nano-8m";
    std::string name;                ///< of the model; empty: the preset's
    std::string license;             ///< of the weights, for the file
    double minutes = 0;              ///< measures the speed first, then fixes the steps
    std::uint64_t tokens = 0;        ///< to train on, when no minutes are given
    std::string precision = "auto";  ///< f32, bf16, or auto: bf16 where the processor has it
    std::uint64_t seed = 1;
    std::uint32_t threads = 0;  ///< 0: one per core
    std::uint32_t batch = 0;    ///< sequences of one step; 0: the preset's
    double learning_rate = 0;   ///< peak; 0: the preset's
    double checkpoint_minutes = 5;
    std::uint32_t patience =
        0;  ///< evaluations without a better held-out loss before it ends early; 0: never
};

/// What a run looks like at one moment.
struct Progress {
    std::uint64_t step = 0;
    std::uint64_t steps = 0;
    std::uint64_t tokens = 0;  ///< trained on so far
    double loss = 0;           ///< mean since the last report, natural logarithm
    double held_out_loss = 0;  ///< at the last evaluation; 0: none yet
    double gradient_norm = 0;
    double learning_rate = 0;
    double tokens_per_second = 0;
    double seconds_left = 0;
};

/// Follows a run, and may end it.
class Watch {
public:
    virtual ~Watch() = default;
    /// A long piece of preparation; `total` 0: unknown.
    virtual void prepare(const char* what, std::uint64_t done, std::uint64_t total) = 0;
    virtual void progress(const Progress& now) = 0;
    /// Asked between steps; true writes a checkpoint and ends the call.
    virtual bool stop() = 0;
};

/// The held-out loss on one text file.
struct SourceReport {
    std::string name;
    double loss = 0;           ///< per token, natural logarithm
    double bits_per_byte = 0;  ///< comparable between vocabularies
    std::uint64_t tokens = 0;  ///< that were predicted
};

struct Outcome {
    bool finished = false;  ///< false: stopped; `resume` goes on
    Progress last;
    std::filesystem::path model;  ///< f16; the q8_0 file lies beside it
    std::vector<SourceReport> held_out;
};

/// Pre-trains a model from random weights. Errors: invalid_request, not_found, conflict (the folder
/// holds a run, or another process works on it), unavailable, exhausted (memory).
Result<Outcome> train_base(const BaseOptions& options, Watch& watch);
/// Goes on from the last checkpoint, to the same weights as a run that was never interrupted (on
/// the same kind of processor). Errors: as train_base; not_found (no run there); corrupt.
Result<Outcome> resume(const std::filesystem::path& run, Watch& watch);

enum class RunKind : std::uint8_t { base, adapter, full };

/// What a folder's run makes, and the model that it starts from (empty: random weights).
struct RunFacts {
    RunKind kind = RunKind::base;
    std::filesystem::path base;
};
/// Errors: not_found, corrupt.
Result<RunFacts> read_facts(const std::filesystem::path& run);

struct Status {
    std::string name;
    std::string preset;  ///< or what is trained on which base
    std::uint64_t parameters = 0;
    bool finished = false;
    bool running = false;          ///< a process works on it now
    Progress last;                 ///< from the log
    std::uint64_t checkpoint = 0;  ///< step of the last checkpoint
};
/// Errors: not_found, corrupt.
Result<Status> read_status(const std::filesystem::path& run);

}  // namespace molly::train
