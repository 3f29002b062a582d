#pragma once
// Owns a llama_batch of a fixed capacity.
#include <cstdint>

#include "base/assert.h"
#include "engine/internal/model.h"

namespace molly::engine {

class Batch {
public:
    explicit Batch(std::size_t capacity)
        : capacity_(static_cast<std::int32_t>(capacity)),
          batch_(llama_batch_init(capacity_, 0, 1)) {}
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;
    ~Batch() { llama_batch_free(batch_); }

    void clear() noexcept { batch_.n_tokens = 0; }
    std::int32_t size() const noexcept { return batch_.n_tokens; }
    const llama_batch& view() const noexcept { return batch_; }

    /// Returns the token's place in the batch.
    std::int32_t add(Token token, llama_pos position, llama_seq_id sequence, bool output) {
        const std::int32_t at = batch_.n_tokens++;
        MOLLY_ASSERT(at < capacity_);
        batch_.token[at] = token;
        batch_.pos[at] = position;
        batch_.n_seq_id[at] = 1;
        batch_.seq_id[at][0] = sequence;
        batch_.logits[at] = output ? 1 : 0;
        return at;
    }

private:
    std::int32_t capacity_;
    llama_batch batch_;
};

}  // namespace molly::engine
