#pragma once
// Text files as tokens: cached on disk, split into training and held-out documents, and cut into
// windows in an order that a seed decides. Immutable once open; safe from any thread.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "train/internal/pass.h"
#include "train/tokenizer.h"
#include "train/train.h"

namespace molly::train {

/// One file's tokens. Documents end with end_of_text.
struct SourceTokens {
    std::string name;
    std::string hash;         ///< SHA-256 of the text, hex
    std::uint64_t bytes = 0;  ///< of the text
    double weight = 1;
    std::vector<std::uint16_t> training;
    std::vector<std::uint16_t> held_out;
};

/// Arrays of one batch, which Batch views.
class BatchArrays {
public:
    BatchArrays(std::size_t sequences, std::size_t tokens);
    /// Fills one sequence from tokens + 1 tokens; documents do not see each other.
    void set(std::size_t sequence, const std::uint16_t* from, Token separator);
    Batch view(std::size_t sequences) const;
    std::size_t sequences() const noexcept { return sequences_; }

private:
    std::size_t sequences_, tokens_;
    std::vector<std::int32_t> input_, target_;
    std::vector<float> weight_;
    std::vector<std::uint32_t> first_;
};

class Corpus {
public:
    /// Reads every file, or its cache in `cache` when neither text nor vocabulary changed.
    /// A document ends at a blank line or with its file; of every hundred pieces (documents, or
    /// lines of about 4 KiB where a document is longer) one is held out, and at least one of each
    /// file. `progress` gets bytes done and bytes in all. Errors: not_found, invalid_request (not
    /// UTF-8, too little text), unavailable.
    static Result<Corpus> open(
        const std::vector<Source>& sources, const Tokenizer& tokenizer, std::uint32_t context,
        const std::filesystem::path& cache,
        const std::function<void(std::uint64_t, std::uint64_t)>& progress = {});

    const std::vector<SourceTokens>& sources() const noexcept { return sources_; }
    std::uint64_t training_tokens() const noexcept;  ///< of one epoch, weights applied
    /// Fills the batch of a step; `step` and the seed decide its windows, nothing else.
    void fill(BatchArrays& batch, std::uint64_t step, std::uint64_t seed) const;
    /// Up to `windows_max` held-out windows of one source, or of all of them (-1), evenly spread.
    std::vector<const std::uint16_t*> held_out(int source, std::size_t windows_max) const;
    Token separator() const noexcept { return separator_; }
    std::uint32_t context() const noexcept { return context_; }

private:
    /// Source and first token of a window.
    using Window = std::pair<std::uint32_t, std::uint64_t>;
    const std::vector<Window>& epoch(std::uint64_t number, std::uint64_t seed) const;

    std::vector<SourceTokens> sources_;
    std::uint32_t context_ = 0;
    Token separator_ = 0;
    // The epoch at hand; fill() is called by one thread only.
    mutable std::vector<Window> order_;
    mutable std::uint64_t order_epoch_ = ~std::uint64_t{0};
    mutable std::uint64_t order_seed_ = 0;
};

}  // namespace molly::train
