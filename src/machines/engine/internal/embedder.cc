#include "engine/internal/embedder.h"

#include <cmath>

#include "engine/internal/batch.h"

namespace molly::engine {

Result<void> Embedder::open() {
    if (context_) return {};
    llama_context_params params = llama_context_default_params();
    params.n_ctx = text_tokens_max;
    params.n_batch = text_tokens_max;
    params.n_ubatch = text_tokens_max;  // a text must be pooled in one pass
    params.n_seq_max = 1;
    params.n_threads = static_cast<std::int32_t>(threads_);
    params.n_threads_batch = static_cast<std::int32_t>(threads_);
    params.embeddings = true;
    ContextPtr context(llama_init_from_model(model_.handle(), params));
    if (context && llama_pooling_type(context.get()) == LLAMA_POOLING_TYPE_NONE) {
        params.pooling_type = LLAMA_POOLING_TYPE_MEAN;
        context.reset(llama_init_from_model(model_.handle(), params));
    }
    if (!context) {
        return fail(ErrorCode::exhausted,
                    "no memory for the embedding context; close something or use a smaller model");
    }
    context_ = std::move(context);
    return {};
}

Result<std::vector<float>> Embedder::embed(const std::vector<Token>& tokens) {
    TRY_DO(open());
    llama_memory_t memory = llama_get_memory(context_.get());
    if (memory != nullptr) llama_memory_clear(memory, false);
    Batch batch(tokens.size());
    for (std::size_t i = 0; i < tokens.size(); ++i)
        batch.add(tokens[i], static_cast<llama_pos>(i), 0, true);
    const int failed = memory != nullptr ? llama_decode(context_.get(), batch.view())
                                         : llama_encode(context_.get(), batch.view());
    const float* values = failed == 0 ? llama_get_embeddings_seq(context_.get(), 0) : nullptr;
    if (values == nullptr) return fail(ErrorCode::internal, "the model gave no embedding");
    std::vector<float> vector(values, values + model_.description().embed);
    double sum = 0;
    for (const float value : vector)
        sum += static_cast<double>(value) * value;
    const auto length = static_cast<float>(std::sqrt(sum));
    if (!std::isfinite(length)) return fail(ErrorCode::internal, "the embedding is not finite");
    if (length > 0) {
        for (float& value : vector)
            value /= length;
    }
    return vector;
}

}  // namespace molly::engine
