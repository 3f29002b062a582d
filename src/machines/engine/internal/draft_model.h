#pragma once
// A small model with the same vocabulary that guesses what the engine's model will say. Belongs to
// the engine thread once it is open.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "engine/internal/batch.h"
#include "engine/internal/model.h"

namespace molly::engine {

class DraftModel {
public:
    /// With a place for each of `limits.sequences_max`. Errors: not_found, corrupt, exhausted;
    /// conflict (another vocabulary than `target`'s); unsupported (it cannot take tokens back).
    static Result<std::unique_ptr<DraftModel>> open(
        const std::filesystem::path& file, const Model& target, const Limits& limits,
        std::uint32_t threads, std::shared_ptr<const ComputeThreads> kept_threads);
    DraftModel(const DraftModel&) = delete;
    DraftModel& operator=(const DraftModel&) = delete;
    ~DraftModel() = default;

    struct Wish {
        std::size_t place = 0;
        std::span<const Token> text;
        Token next = 0;          ///< behind the text
        std::uint32_t most = 0;  ///< tokens
        std::vector<Token> draft{};
    };
    /// The likeliest tokens behind each text, one forward pass for each token of the longest draft.
    /// Whoever has much text that is new here reads a part of it and gets no draft yet. The tokens
    /// that the first pass read.
    std::size_t draft(std::span<Wish> wishes);

    /// Bytes that its keys and values take, whoever runs.
    std::uint64_t bytes() const noexcept { return bytes_; }
    const Description& description() const noexcept { return model_->description(); }

private:
    DraftModel(std::unique_ptr<Model> model, ContextPtr context, const Limits& limits);
    void begin(const Wish& wish, std::vector<Token>& unread);
    bool read(std::span<const std::size_t> places, std::span<std::vector<Token>> unread,
              std::span<Token> likeliest);
    Token likeliest_at(std::int32_t row) const;

    std::unique_ptr<Model> model_;
    ContextPtr context_;
    Batch batch_;
    std::uint32_t context_tokens_max_;
    std::uint32_t step_tokens_max_;
    std::uint64_t bytes_ = 0;
    std::vector<std::vector<Token>> held_;  // what each place has computed; shape: [places]
};

}  // namespace molly::engine
