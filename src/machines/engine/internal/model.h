#pragma once
// One GGUF model in memory: its weights, vocabulary and description. Reading is safe from any
// thread; only the engine thread computes with it.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <llama.h>

#include "base/result.h"
#include "engine/engine.h"
#include "engine/internal/compute_threads.h"

namespace molly::engine {

using Token = llama_token;

struct ModelDeleter {
    void operator()(llama_model* model) const noexcept { llama_model_free(model); }
};
/// Keeps the threads that a context computes with until it is gone.
struct ContextDeleter {
    std::shared_ptr<const ComputeThreads> threads{};
    void operator()(llama_context* context) const noexcept { llama_free(context); }
};
using ContextPtr = std::unique_ptr<llama_context, ContextDeleter>;

/// Loads the CPU backends once per process and turns ggml's messages into debug events.
/// Errors: unsupported, when no backend fits this machine.
Result<void> load_backends(const std::filesystem::path& folder);

/// Bytes of memory that can be had without swapping; the largest number when unknown.
std::uint64_t memory_available();

class Model {
public:
    /// Errors: not_found, corrupt, exhausted.
    static Result<std::unique_ptr<Model>> load(const std::filesystem::path& file);

    llama_model* handle() const noexcept { return model_.get(); }
    const llama_vocab* vocabulary() const noexcept { return vocabulary_; }
    const Description& description() const noexcept { return description_; }
    Description& description() noexcept { return description_; }

    /// Special tokens that stand in `text` become themselves. Errors: too_large.
    Result<std::vector<Token>> tokenize(std::string_view text, bool add_special) const;
    std::size_t tokens() const noexcept { return pieces_.size(); }
    /// The token's bytes, with special tokens spelled out; they may be part of a code point.
    const std::string& piece(Token token) const { return pieces_[static_cast<std::size_t>(token)]; }
    /// Control tokens say something to the engine and nothing to the reader.
    bool is_control(Token token) const noexcept {
        return llama_vocab_is_control(vocabulary_, token);
    }
    bool ends_answer(Token token) const noexcept { return llama_vocab_is_eog(vocabulary_, token); }

    /// Bytes that one token takes in the context of one sequence (keys and values in f16).
    std::uint64_t cache_bytes_per_token() const noexcept;

    /// A number that the file recommends for sampling, or `otherwise`.
    float recommended(llama_model_meta_key key, float otherwise) const;

private:
    explicit Model(llama_model* model);
    void describe(const std::filesystem::path& file);
    std::string meta(const char* key) const;

    std::unique_ptr<llama_model, ModelDeleter> model_;
    const llama_vocab* vocabulary_;
    std::vector<std::string> pieces_;  // shape: [vocabulary]
    Description description_;
};

/// What a context holds, and how it is computed.
struct ContextShape {
    std::uint32_t context_tokens = 0;  ///< of one sequence
    std::uint32_t sequences = 1;
    std::uint32_t step_tokens = 0;  ///< at most in one forward pass
    std::uint32_t threads = 1;
    std::shared_ptr<const ComputeThreads> kept_threads{};  ///< null: some for each forward pass
};
/// A context with keys and values of its own for each sequence. Null where memory does not hold it,
/// or the model keeps neither.
ContextPtr new_context(const Model& model, const ContextShape& shape);

}  // namespace molly::engine
