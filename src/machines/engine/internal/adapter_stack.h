#pragma once
// Adapters' deltas through ggml's own operations: the factors of those in use stand one behind the
// other in two tensors per layer, and `mul_mat_id` picks each row's. For weights on a device that
// cannot run our kernels, such as a GPU; on a CPU it is the slower way. Belongs to the engine
// thread.
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <ggml-cpp.h>

#include "engine/internal/adapter_step.h"

namespace molly::engine {

class AdapterStack {
public:
    AdapterStack() = default;
    AdapterStack(const AdapterStack&) = delete;
    AdapterStack& operator=(const AdapterStack&) = delete;
    ~AdapterStack() = default;

    /// A layer of the graph, in the order of their numbers, and its weight. The factors will lie on
    /// the device where the weight does.
    void note(const ggml_tensor& weight);
    /// Whether some weight lies where our kernels cannot run.
    bool wanted() const noexcept { return wanted_; }

    /// Brings the factors of the step's adapters into the stack. False: there is no memory.
    bool set_step(const std::vector<AdapterMix>& by_sequence, std::span<const LinearLayer> layers);
    /// Another one after the stack moved: graphs that point into it cannot be used again.
    std::uint32_t generation() const noexcept { return generation_; }

    /// A graph's input that says which place of the stack each row takes. shape: [1, rows]
    static ggml_tensor* new_choice(ggml_context* context, std::int64_t rows);
    /// Fills it for the sequence of each row.
    void choose(std::span<const std::uint32_t> sequences, ggml_tensor* choice) const;
    /// output + B (A input) with each row's factors, their scales included.
    ggml_tensor* add_delta(ggml_context* context, std::uint32_t layer, ggml_tensor* input,
                           ggml_tensor* output, ggml_tensor* choice) const;

private:
    struct Layer {
        ggml_backend_buffer_type_t memory = nullptr;
        ggml_context_ptr context;
        ggml_backend_buffer_ptr buffer;
        ggml_tensor* a = nullptr;  ///< shape: [places, rank, in]
        ggml_tensor* b = nullptr;  ///< shape: [places, out, rank]
    };
    struct Place {
        std::string mix;  ///< what its factors are of; the first place is for rows without any
        std::uint64_t used = 0;
    };

    void grow(std::uint32_t rank, std::size_t places);
    std::size_t place_for(const std::string& mix) const;
    bool prepare(Layer& layer, const LinearLayer& shape) const;
    bool write(std::size_t place, const AdapterMix& mix, std::span<const LinearLayer> layers);
    void write_layer(const Layer& layer, std::uint32_t number, std::size_t place,
                     const AdapterMix& mix, const LinearLayer& shape) const;

    bool wanted_ = false;
    std::uint32_t rank_ = 0;
    std::uint32_t generation_ = 0;
    std::uint64_t steps_ = 0;
    std::vector<Layer> layers_;
    std::vector<Place> places_;
    std::vector<std::int32_t> by_sequence_;  // its place. shape: [sequences]
};

}  // namespace molly::engine
