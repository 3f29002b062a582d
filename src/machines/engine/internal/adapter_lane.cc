#include "engine/internal/adapter_lane.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace molly::engine {
namespace {

// Changing llama.cpp's adapter costs as much as a step or two.
constexpr std::uint32_t turn_steps_max = 16;

}  // namespace

AdapterLane::AdapterLane(llama_model* model, const Limits& limits, std::uint32_t threads)
    : graph_(best_lora_kernel(), limits.deterministic,
             {limits.own_products ? best_row_product() : RowProductChoice{}, threads}) {
    whole_.model = model;
}

void AdapterLane::settle(AdapterRoute wanted) {
    graph_.freeze();
    const auto usable = std::ranges::count_if(
        graph_.layers(), [](const LinearLayer& layer) { return layer.usable; });
    together_ = wanted != AdapterRoute::one_at_a_time && usable > 0;
    graph_.use_stack(wanted == AdapterRoute::stacked || graph_.stack_wanted());
    const OwnProducts& products = graph_.products();
    log_event(LogLevel::info, "products_ready",
              {{"kernel", products.kernel()}, {"layers", products.layers()}});
    if (wanted != AdapterRoute::one_at_a_time && usable == 0) {
        log_event(LogLevel::warning, "adapters_in_turns",
                  {{"why",
                    "no linear layer of this model goes through Molly's own function; "
                    "requests with different adapters wait for each other"}});
        return;
    }
    log_event(LogLevel::info, "adapters_ready",
              {{"together", together_}, {"layers", layers()}, {"kernel", kernel()}});
}

Result<std::shared_ptr<HotSet>> AdapterLane::make_hot_set(
    std::uint64_t bytes_max, const std::shared_ptr<MemoryBudget>& budget, AdapterNumbers numbers) {
    if (together_) return HotSet::make(graph_.layers(), bytes_max, budget, numbers);
    return std::make_shared<HotSet>(whole_, bytes_max, budget);
}

void AdapterLane::choose(const std::vector<std::size_t>& slots,
                         const std::vector<AdapterMix>& mixes, std::vector<SequenceView>& views) {
    if (together_ || slots.empty()) return;
    const auto runs = [&](std::size_t i) { return !views[i].paused; };
    const auto mine = [&](std::size_t i) { return mixes[slots[i]] == turn_; };
    bool present = false;
    std::size_t other = slots.size();
    // The next one in the order of the slots after a slot of this turn, so that all have theirs.
    std::size_t last_mine = 0;
    for (std::size_t i = 0; i < slots.size(); ++i) {
        if (!runs(i) || !mine(i)) continue;
        present = true;
        last_mine = i;
    }
    for (std::size_t k = 1; k <= slots.size() && other == slots.size(); ++k) {
        const std::size_t i = (last_mine + k) % slots.size();
        if (runs(i) && !mine(i)) other = i;
    }
    if (other < slots.size() && (!present || ++turn_steps_ >= turn_steps_max)) {
        turn_ = mixes[slots[other]];
        turn_steps_ = 0;
    }
    for (std::size_t i = 0; i < slots.size(); ++i)
        if (!mine(i)) views[i].paused = true;
}

int AdapterLane::decode(llama_context& context, const llama_batch& batch,
                        std::vector<AdapterMix> mixes) {
    if (together_) {
        if (!graph_.set_step(std::move(mixes))) return -1;
        const AdapterGraph::Scope scope(graph_);
        return llama_decode(&context, batch);
    }
    std::vector<std::shared_ptr<llama_adapter_lora>> before;  // freed after the lock and the use
    std::vector<llama_adapter_lora*> adapters;
    std::vector<float> scales;
    const std::scoped_lock lock(whole_.mutex);
    before.swap(applied_);
    for (const AdapterStep& step : turn_) {
        applied_.push_back(step.adapter->whole());
        adapters.push_back(applied_.back().get());
        scales.push_back(step.scale);
    }
    llama_set_adapters_lora(&context, adapters.data(), adapters.size(), scales.data());
    return llama_decode(&context, batch);
}

}  // namespace molly::engine
