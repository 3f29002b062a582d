#pragma once
// Linear layers with frozen weights and an adapter's part, on all lanes at once: weights are made
// floats a tile at a time, each lane has its own rows of them, and the adapter rides along as a few
// more columns of the same product.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "train/internal/frozen_model.h"
#include "train/internal/lanes.h"
#include "train/internal/matmul.h"

namespace molly::train {

/// One linear layer: y = x W^T + bias (+ scale * x A^T B^T).
struct Linear {
    const FrozenMatrix* weight = nullptr;
    const float* bias = nullptr;  ///< null: none
    const float* b = nullptr;     ///< [rows, rank]; null: not adapted
    float* b_gradient = nullptr;
    float* y = nullptr;         ///< forward: written, or added to; [tokens, rows]
    std::size_t y_stride = 0;   ///< floats from token to token
    const float* dy = nullptr;  ///< backward; [tokens, rows], y_stride apart
};

/// Linear layers that read the same x.
struct LinearGroup {
    std::span<Linear> layers;  ///< adapted ones in the order of their A
    const float* a = nullptr;  ///< [adapted * rank, in]
    float* a_gradient = nullptr;
    std::size_t adapted = 0;
    std::uint64_t drop_key = 0;  ///< decides what dropout takes away here
};

struct AdapterScale {
    std::size_t rank = 0;
    float scale = 1;  ///< alpha / rank
    float drop = 0;   ///< dropout's share
};

class Projections {
public:
    /// `width_max`: of any input. `adapted_max`: adapted layers of any group.
    Projections(Lanes& lanes, Precision precision, std::size_t tokens_max, std::size_t width_max,
                const AdapterScale& adapter, std::size_t adapted_max);
    ~Projections();
    Projections(const Projections&) = delete;
    Projections& operator=(const Projections&) = delete;
    Projections(Projections&&) = delete;
    Projections& operator=(Projections&&) = delete;

    /// y of every layer. Leaves scale * x A^T, [tokens, adapted * rank], in `low` for backward.
    /// `add`: y is added to.
    void forward(const LinearGroup& group, std::size_t tokens, const float* x, float* low,
                 bool add);
    /// dx = the sum over the layers, [tokens, in]; adds the gradients of A and B. x and `low` are
    /// those of forward.
    void backward(const LinearGroup& group, std::size_t tokens, const float* x, const float* low,
                  float* dx);

    /// The multiplier of one lane, for work that the caller spreads over lanes.
    Matmul& multiply(std::size_t lane) { return *state_[lane].multiply; }

private:
    struct Lane {
        std::unique_ptr<Matmul> multiply;
        std::vector<float> row, tile, partial, dropped;
        std::vector<std::uint16_t> half_tile;
    };
    struct Tile;
    void extend(const LinearGroup& group, std::size_t tokens, const float* x, const float* low);
    void make_low(const LinearGroup& group, std::size_t tokens, const float* x, float* low);
    const float* dropped(const LinearGroup& group, std::size_t from, std::size_t to, const float* x,
                         std::size_t width, std::vector<float>& to_buffer) const;
    In tile(Lane& lane, const Linear& layer, std::size_t slot, std::size_t adapted,
            std::size_t from, std::size_t to);
    template <class Work>
    void each_tile(const LinearGroup& group, std::size_t lane, const Work& work);
    void combine(const LinearGroup& group, std::size_t tokens, float* dx);
    void a_gradient(const LinearGroup& group, std::size_t tokens, const float* x);

    Lanes& lanes_;
    Precision precision_;
    AdapterScale adapter_;
    std::vector<Lane> state_;
    std::vector<float> extended_;      // [tokens, in + adapted * rank]
    std::vector<std::uint16_t> half_;  // the same in bf16
    std::vector<float> dlow_;          // [tokens, adapted * rank]
};

}  // namespace molly::train
