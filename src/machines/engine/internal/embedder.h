#pragma once
// Turns texts into vectors with a context of its own. Used on the engine thread only.
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "engine/internal/model.h"

namespace molly::engine {

class Embedder {
public:
    Embedder(const Model& model, std::uint32_t threads) : model_(model), threads_(threads) {}

    /// Tokens that one text may have.
    static constexpr std::uint32_t text_tokens_max = 2048;

    /// One vector of length 1 per text, by the model's own pooling or else the mean.
    /// shape: [embed]. Errors: exhausted (no memory), internal.
    Result<std::vector<float>> embed(const std::vector<Token>& tokens);

private:
    Result<void> open();

    const Model& model_;
    std::uint32_t threads_;
    ContextPtr context_;
};

}  // namespace molly::engine
