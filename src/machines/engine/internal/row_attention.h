#pragma once
// Attention whose every row is computed alone.
struct llama_context;

namespace molly::engine {

/// From now on the context's attention takes one row after the other: ggml otherwise computes 64
/// rows and more in tiles, and shares a lone row of a long text among its threads, and each way
/// rounds differently. False: this backend has only one way, or cannot be asked.
bool attend_row_by_row(llama_context& context);

}  // namespace molly::engine
