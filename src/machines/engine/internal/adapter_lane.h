#pragma once
// The way on which adapters reach the forward pass: together through the graph, or in turns where
// that is not possible. Belongs to the engine thread once the engine runs.
#include <memory>
#include <vector>

#include <llama.h>

#include "engine/engine.h"
#include "engine/internal/adapter_graph.h"
#include "engine/internal/cache_memory.h"
#include "engine/internal/hot_set.h"
#include "engine/internal/plan_step.h"

namespace molly::engine {

class AdapterLane {
public:
    /// `threads` compute at most.
    AdapterLane(llama_model* model, const Limits& limits, std::uint32_t threads);
    AdapterLane(const AdapterLane&) = delete;
    AdapterLane& operator=(const AdapterLane&) = delete;
    ~AdapterLane() = default;

    /// Contexts made while it lives can run adapters together.
    AdapterGraph::Scope scope() { return AdapterGraph::Scope(graph_); }
    /// Decides after the context was made, by what went through our function, and logs it.
    void settle(AdapterRoute wanted);
    /// Errors: exhausted.
    Result<std::shared_ptr<HotSet>> make_hot_set(std::uint64_t bytes_max,
                                                 const std::shared_ptr<MemoryBudget>& budget,
                                                 AdapterNumbers numbers);

    /// The keys and values of the context that was made in the scope.
    CacheMemory cache_memory(std::uint32_t places) const {
        return CacheMemory(graph_.cache_tensors(), places);
    }

    bool together() const noexcept { return together_; }
    const char* kernel() const noexcept {
        if (!together_) return "llama.cpp";
        return graph_.stacked() ? "mul_mat_id" : graph_.kernel();
    }
    std::uint32_t layers() const noexcept {
        return static_cast<std::uint32_t>(graph_.layers().size());
    }

    /// Leaves the sequences to run next. Together: all. In turns: those of one adapter, a few steps
    /// long; the others wait as if their readers were slow. shapes: slots and views alike; mixes by
    /// slot
    void choose(const std::vector<std::size_t>& slots, const std::vector<AdapterMix>& mixes,
                std::vector<SequenceView>& views);
    /// llama_decode with the adapters of `mixes`; as its result.
    int decode(llama_context& context, const llama_batch& batch, std::vector<AdapterMix> mixes);

private:
    AdapterGraph graph_;
    WholeModel whole_;
    bool together_ = false;
    AdapterMix turn_;  // in turns: whose it is
    std::uint32_t turn_steps_ = 0;
    // In turns: graphs point into them.
    std::vector<std::shared_ptr<llama_adapter_lora>> applied_;
};

}  // namespace molly::engine
