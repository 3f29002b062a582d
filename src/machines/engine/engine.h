#pragma once
// Runs one local model for many sequences in shared batches. One thread owns all model state; call
// from any thread. Knows nothing of policy or HTTP: it sees a request's messages, tools and
// sampling, and produces Deltas.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/task.h"
#include "domain/request.h"
#include "domain/response.h"
#include "engine/cooperation.h"
#include "engine/prefix_store.h"

namespace molly::engine {

/// How requests with different adapters are computed.
enum class AdapterRoute : std::uint8_t {
    automatic,      ///< together where that works, else one after the other
    stacked,        ///< together, through ggml's mul_mat_id; automatic where weights lie on a GPU
    one_at_a_time,  ///< in turns, each adapter alone, through llama.cpp's own interface
};

/// How adapters' numbers are kept in memory.
enum class AdapterNumbers : std::uint8_t {
    f16,   ///< as files have them
    int8,  ///< half of the memory, each row in 127 steps of its largest number
};

/// `f16` or `int8`; unset for any other word.
std::optional<AdapterNumbers> adapter_numbers_from(std::string_view word) noexcept;

/// When several drafted tokens are checked in one forward pass.
enum class Speculation : std::uint8_t {
    off,
    measured,  ///< where it was measured to pay
    always,    ///< wherever there is a draft: for tests and measurements
};

/// `off`, `measured` or `always`; unset for any other word.
std::optional<Speculation> speculation_from(std::string_view word) noexcept;

struct Limits {
    std::uint32_t sequences_max = 8;
    std::uint32_t step_tokens_max = 512;  ///< prompt and answer tokens in one forward pass
    std::uint32_t context_tokens_max =
        8192;                           ///< per sequence; lowered to what the model was trained for
    std::uint32_t inbox_jobs_max = 64;  ///< waiting requests; one more is refused with exhausted
    std::uint32_t answer_tokens_default = 1024;  ///< when the caller gives no maximum
    std::uint32_t threads = 0;                   ///< 0: the cores that are free
    std::filesystem::path backends{};            ///< folder of the ggml backends; empty: as built
    /// Keys and values, kept prefixes and adapters together; 0: half of what is free.
    std::uint64_t memory_bytes_max = 0;
    std::uint64_t adapter_bytes_max = 0;  ///< of it, adapters; 0: as much as there is
    AdapterRoute adapter_route = AdapterRoute::automatic;
    AdapterNumbers adapter_numbers = AdapterNumbers::f16;
    /// Quantized weights are multiplied by our own kernels where they are faster than ggml's.
    bool own_products = true;
    /// The same greedy answer whatever shares the batch, somewhat slower.
    bool deterministic = false;
    Speculation speculation = Speculation::measured;
    std::uint32_t draft_tokens_max = 8;       ///< of one sequence, in one forward pass
    std::filesystem::path draft_model{};      ///< a GGUF file of the same vocabulary; empty: none
    std::shared_ptr<PrefixStore> prefixes{};  ///< of this model; null: nothing is kept on disk
};

/// One adapter of a request.
struct AdapterUse {
    std::string id;              ///< for messages: `law@1.0.0`
    std::string hash;            ///< of its content; equal ones share memory
    std::filesystem::path file;  ///< a GGUF LoRA file that never changes
    float scale = 1;
    bool pinned = false;  ///< stays in memory
};

/// The adapters in memory at one moment, and what was counted since the start.
struct AdapterMemory {
    bool together = false;     ///< different adapters share a forward pass
    std::string kernel;        ///< the instruction set that computes them
    std::uint32_t layers = 0;  ///< linear layers that an adapter may change
    std::uint32_t hot = 0;     ///< adapters in memory
    std::uint64_t bytes = 0;   ///< that they take
    std::uint64_t bytes_max = 0;
    std::uint64_t bytes_pinned = 0;
    std::uint64_t spare = 0;    ///< bytes at hand for the next one
    std::uint32_t waiting = 0;  ///< requests that wait for room
    std::uint64_t hits = 0;
    std::uint64_t loads = 0;
    std::uint64_t evictions = 0;
    double load_ms_last = 0;
};

/// The one budget at one moment, in bytes.
struct MemoryState {
    std::uint64_t bytes_max = 0;
    std::uint64_t bytes = 0;           ///< of keys and values, kept prefixes and adapters
    std::uint64_t cache = 0;           ///< of keys and values, kept prefixes included
    std::uint64_t prefixes = 0;        ///< of it, what only keeps prefixes
    std::uint64_t cache_resident = 0;  ///< what the system says of all keys and values
    std::uint64_t parked = 0;          ///< how often a request gave up its memory and went on later
    bool elastic = false;              ///< keys and values can go back to the system
};

/// Drafted tokens since the start.
struct SpeculationState {
    bool on = false;
    std::string draft_model;     ///< general.name of its file; empty: there is none
    std::uint64_t drafted = 0;   ///< tokens that were computed on trial
    std::uint64_t accepted = 0;  ///< of them, those that came
    std::uint64_t steps = 0;     ///< forward passes that checked some
};

/// Beginnings of prompts on disk that this engine can read.
struct StoredPrefixes {
    std::uint32_t count = 0;
    std::uint64_t bytes = 0;    ///< of keys and values
    std::uint64_t loaded = 0;   ///< since the start
    std::uint64_t saved = 0;    ///< since the start
    std::uint64_t refused = 0;  ///< damaged or gone, since the start
};

/// What the loaded model is.
struct Description {
    std::string name;       ///< general.name of the file
    std::string hash;       ///< SHA-256 of the file, hex; filled by the caller that computed it
    std::string made_from;  ///< the hash of the file whose head this one has smaller; or empty
    std::string architecture;
    std::string quantization;
    std::string vocabulary;  ///< equal where token ids mean the same (128 bits, hex)
    std::uint64_t parameters = 0;
    std::uint64_t file_bytes = 0;
    std::uint32_t context_tokens_max = 0;
    std::uint32_t embed = 0;  ///< dimensions of an embedding
    std::uint32_t layers = 0;
    bool chat_template = false;
    bool tools = false;

    /// The hash that adapters of this base name.
    const std::string& base_hash() const noexcept { return made_from.empty() ? hash : made_from; }
};

/// Takes the pieces of one answer, on the executor of the coroutine that awaits `generate`.
class DeltaSink {
public:
    virtual ~DeltaSink() = default;
    /// Suspends while the reader is slow; only this sequence waits. Errors: cancelled, when the
    /// reader has gone.
    virtual Task<Result<void>> write(const domain::Delta& delta) = 0;
};

struct Embeddings {
    std::vector<std::vector<float>> vectors;  ///< shape: [inputs, embed], each of length 1
    domain::Usage usage;
};

/// Load at one moment.
struct Load {
    std::uint32_t running = 0;
    std::uint32_t waiting = 0;
};

class Engine {
public:
    /// Loads a GGUF file. Errors: not_found, corrupt, unsupported, exhausted (does not fit in
    /// memory).
    static Result<std::unique_ptr<Engine>> open(const std::filesystem::path& model, Limits limits);
    virtual ~Engine() = default;  // cancels what runs, then joins the engine thread

    /// Runs a chat or completion to its end. The last Delta carries finish and usage.
    /// Errors: invalid_request (context_length_exceeded, a schema or grammar that does not
    /// compile), exhausted (inbox full), deadline_exceeded, cancelled, unsupported.
    virtual Task<Result<void>> generate(const domain::Request& request, DeltaSink& sink) = 0;

    /// The same with adapters, whose deltas add up: loaded when they are not in memory, held until
    /// the answer is complete. Errors: also not_found, conflict (made for another base), corrupt.
    virtual Task<Result<void>> generate_with(const domain::Request& request,
                                             std::vector<AdapterUse> adapters, DeltaSink& sink);

    /// Vectors of `request.inputs`. Errors: as generate.
    virtual Task<Result<Embeddings>> embed(const domain::Request& request) = 0;

    /// Opens a session that checks drafts of one answer, which `generate` gives to whoever has the
    /// request that the session serves. Errors: conflict (another vocabulary, an id that is taken),
    /// exhausted (too many sessions), unsupported (the model cannot take tokens back, or drafts are
    /// off).
    virtual Result<std::shared_ptr<Verification>> verify(VerificationTerms terms);
    /// The open session of that id and owner; null: there is none.
    virtual std::shared_ptr<Verification> verification(const std::string& id,
                                                       const std::string& owner) const;
    /// Drafts an answer that another engine makes. Errors: exhausted (the places are taken),
    /// unsupported.
    virtual Result<std::unique_ptr<Drafting>> draft(const domain::Request& request);

    virtual const Description& describe() const noexcept = 0;
    virtual Load load() const noexcept = 0;
    virtual AdapterMemory adapters() const { return {}; }
    virtual MemoryState memory() const { return {}; }
    virtual SpeculationState speculation() const { return {}; }
    virtual StoredPrefixes stored_prefixes() const { return {}; }
    /// Gives an adapter's memory back as soon as no request uses it.
    virtual void drop_adapter(const std::string& /*hash*/) {}
};

}  // namespace molly::engine
