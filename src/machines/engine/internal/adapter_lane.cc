#include "engine/internal/adapter_lane.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace molly::engine {
namespace {

// Changing llama.cpp's adapter costs as much as a step or two.
constexpr std::uint32_t turn_steps_max = 16;

bool same(const AdapterStep& a, const AdapterStep& b) {
    return a.adapter == b.adapter && (a.adapter == nullptr || a.scale == b.scale);
}

}  // namespace

AdapterLane::AdapterLane(llama_model* model, bool deterministic)
    : graph_(best_lora_kernel(), deterministic) {
    whole_.model = model;
}

void AdapterLane::settle(AdapterRoute wanted) {
    graph_.freeze();
    const auto usable = std::ranges::count_if(
        graph_.layers(), [](const LinearLayer& layer) { return layer.usable; });
    together_ = wanted == AdapterRoute::automatic && usable > 0;
    if (wanted == AdapterRoute::automatic && usable == 0) {
        log_event(LogLevel::warning, "adapters_in_turns",
                  {{"why",
                    "no linear layer of this model goes through Molly's own function; "
                    "requests with different adapters wait for each other"}});
        return;
    }
    log_event(LogLevel::info, "adapters_ready",
              {{"together", together_}, {"layers", layers()}, {"kernel", kernel()}});
}

std::shared_ptr<HotSet> AdapterLane::make_hot_set(std::uint64_t bytes_max) {
    if (together_) return std::make_shared<HotSet>(graph_.layers(), bytes_max);
    return std::make_shared<HotSet>(whole_, bytes_max);
}

void AdapterLane::choose(const std::vector<std::size_t>& slots,
                         const std::vector<AdapterStep>& steps, std::vector<SequenceView>& views) {
    if (together_ || slots.empty()) return;
    const auto runs = [&](std::size_t i) { return !views[i].paused; };
    const auto mine = [&](std::size_t i) { return same(steps[slots[i]], turn_); };
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
        turn_ = steps[slots[other]];
        turn_steps_ = 0;
    }
    for (std::size_t i = 0; i < slots.size(); ++i)
        if (!mine(i)) views[i].paused = true;
}

int AdapterLane::decode(llama_context& context, const llama_batch& batch,
                        std::vector<AdapterStep> steps) {
    if (together_) {
        graph_.set_step(std::move(steps));
        const AdapterGraph::Scope scope(graph_);
        return llama_decode(&context, batch);
    }
    std::shared_ptr<llama_adapter_lora> before;  // freed after the lock, and after the last use
    const std::scoped_lock lock(whole_.mutex);
    before = std::exchange(applied_, turn_.adapter != nullptr ? turn_.adapter->whole() : nullptr);
    llama_adapter_lora* adapter = applied_.get();
    llama_set_adapters_lora(&context, &adapter, adapter != nullptr ? 1 : 0, &turn_.scale);
    return llama_decode(&context, batch);
}

}  // namespace molly::engine
