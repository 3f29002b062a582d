#pragma once
// Lets sequences with different LoRA adapters share one forward pass. llama.cpp builds every linear
// layer through one function of its library; this program defines that function, so the dynamic
// linker takes ours, and ours adds an operation that gives each row its own adapter's delta. Tied
// to the pinned version of llama.cpp: whether it is alive is counted, never assumed. Everything
// here belongs to the engine thread, except what is said to be safe.
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/internal/adapter_stack.h"
#include "engine/internal/adapter_step.h"
#include "engine/internal/lora_kernels.h"
#include "engine/internal/own_products.h"

struct llama_ubatch;
struct ggml_tensor;
struct llm_graph_context;

namespace molly::engine {

class AdapterGraph {
public:
    /// With `whole_groups`, every layer is computed for full groups of rows, so that a row's result
    /// does not depend on how many there are.
    AdapterGraph(LoraKernelChoice kernel, bool whole_groups, OwnProducts::Parts products)
        : kernel_(kernel), products_(products), whole_groups_(whole_groups) {}
    AdapterGraph(const AdapterGraph&) = delete;
    AdapterGraph& operator=(const AdapterGraph&) = delete;
    ~AdapterGraph() = default;

    /// While one lives, the graphs that llama.cpp builds on this thread are this object's.
    class Scope {
    public:
        explicit Scope(AdapterGraph& graph);
        Scope(const Scope&) = delete;
        Scope& operator=(const Scope&) = delete;
        ~Scope();

    private:
        AdapterGraph* before_;
    };

    /// Layers that went through our function while the context was made; none: the seam is dead.
    /// From then on no layer joins, and reading them is safe from any thread.
    void freeze() noexcept { frozen_ = true; }
    const std::vector<LinearLayer>& layers() const noexcept { return layers_; }
    const char* kernel() const noexcept { return kernel_.name; }
    const OwnProducts& products() const noexcept { return products_; }

    /// The keys and values that the graphs write to, found while the context was made.
    const std::vector<ggml_tensor*>& cache_tensors() const noexcept { return cache_tensors_; }

    /// Deltas through ggml's own operations from now on, or by our kernels. Before anything runs.
    void use_stack(bool use) noexcept { stacked_ = use; }
    bool stacked() const noexcept { return stacked_; }
    /// Whether weights lie where our kernels cannot run.
    bool stack_wanted() const noexcept { return stack_.wanted(); }

    /// What runs next. shape: [sequences]. False: there is no memory for it.
    bool set_step(std::vector<AdapterMix> by_sequence);

    /// Called by the replaced function: the layer's product, by our own kernel or ggml's, in groups
    /// of rows where that is quicker.
    ggml_tensor* multiply(const llm_graph_context& context, ggml_tensor* weight,
                          ggml_tensor* input);
    /// Called by the replaced function: the layer's output with the deltas, when it gets any.
    ggml_tensor* add_delta(const llm_graph_context& context, ggml_tensor* weight,
                           ggml_tensor* input, ggml_tensor* output);

private:
    class Input;  // lies in the graph: hears of every micro-batch, and whether it may be used again

    /// Rows of a matrix by adapter. A row of several adapters stands in several segments.
    struct Rows {
        struct Segment {
            const HotAdapter* adapter = nullptr;
            std::size_t begin = 0;
            std::size_t end = 0;
        };
        std::vector<std::uint32_t> rows;
        std::vector<float> scales;
        std::vector<Segment> segments;
        std::vector<std::uint32_t> adapted;  // each row that stands in a segment, ascending
    };
    /// What the operation in the graph points to; outlives every graph.
    struct Operation {
        const AdapterGraph* graph = nullptr;
        std::uint32_t layer = 0;
        bool outputs = false;  // its rows are those tokens only whose logits are wanted
    };

    std::uint32_t note(const ggml_tensor& weight, bool usable);
    void note_cache(const llm_graph_context& context);
    Operation* operation(std::uint32_t layer, bool outputs);
    ggml_tensor* add_stacked(const llm_graph_context& context, std::uint32_t layer,
                             ggml_tensor* input, ggml_tensor* output, Input& rows) const;
    void see(const llama_ubatch& batch, Input& rows);
    void sort(const std::vector<std::uint32_t>& sequences, Rows& rows) const;
    void run(const Operation& operation, ggml_tensor& output, std::uint32_t thread,
             std::uint32_t threads) const;
    static void compute(ggml_tensor* output, int thread, int threads, void* operation);

    LoraKernelChoice kernel_;
    OwnProducts products_;
    bool whole_groups_ = false;
    bool frozen_ = false;
    std::vector<ggml_tensor*> cache_tensors_;
    std::vector<LinearLayer> layers_;
    std::map<std::string, std::uint32_t, std::less<>> by_name_;
    std::deque<Operation> operations_;
    std::vector<Operation*> by_layer_;  // shape: [layers, 2]

    std::vector<AdapterMix> step_;  // shape: [sequences]
    std::vector<bool> touched_;     // layers that some adapter of the step changes
    AdapterStack stack_;
    bool stacked_ = false;
    // Of touched_ and the stack: a graph made for another one cannot be used again.
    std::map<std::pair<std::vector<bool>, std::uint32_t>, std::uint32_t> signatures_;
    std::uint32_t signature_ = 0;
    Rows all_;
    Rows outputs_;
};

}  // namespace molly::engine
