#pragma once
// Puts our own kernel for quantized weights into llama.cpp's graphs, in place of ggml's products.
// Reads weights where ggml keeps them, in a layout of the pinned version: each layout is checked
// against ggml's result before it is used. Belongs to the engine thread.
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "engine/internal/row_product.h"

struct ggml_context;
struct ggml_tensor;

namespace molly::engine {

class OwnProducts {
public:
    struct Parts {
        RowProductChoice kernel;
        std::uint32_t threads = 1;  ///< compute at most
    };
    explicit OwnProducts(Parts parts) : kernel_(parts.kernel), scratch_(parts.threads) {}
    OwnProducts(const OwnProducts&) = delete;
    OwnProducts& operator=(const OwnProducts&) = delete;
    ~OwnProducts() = default;

    /// The product in the graph; null where it is to be ggml's.
    ggml_tensor* multiply(ggml_context* context, const ggml_tensor& weight, ggml_tensor& input);

    const char* kernel() const noexcept { return kernel_.name; }
    /// Layers whose products are ours.
    std::uint32_t layers() const noexcept { return static_cast<std::uint32_t>(operations_.size()); }

private:
    /// What an operation in a graph points to; outlives every graph.
    struct Operation {
        OwnProducts* products = nullptr;
        WeightLayout layout = WeightLayout::q8_0;
        const ggml_tensor* weight = nullptr;
    };

    bool equals_ggml(WeightLayout layout, const ggml_tensor& weight);
    void run(const Operation& operation, ggml_tensor& output, std::uint32_t thread,
             std::uint32_t threads);
    static void compute(ggml_tensor* output, int thread, int threads, void* operation);

    RowProductChoice kernel_;
    std::vector<ByteRows> scratch_;  // by thread
    std::map<WeightLayout, bool> trusted_;
    std::map<const ggml_tensor*, Operation> operations_;
};

/// How this tensor's weights lie in memory; unset where no kernel of ours reads them.
std::optional<WeightLayout> weight_layout(const ggml_tensor& weight);

}  // namespace molly::engine
