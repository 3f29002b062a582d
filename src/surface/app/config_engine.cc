#include "app/config_engine.h"

#include <string>
#include <vector>

#include "app/config_specialists.h"

namespace molly::app {
namespace {

void read_speculation(Reader& in, LocalEngine& engine) {
    in.read_word("speculation", engine.limits.speculation, engine::speculation_from,
                 "off, measured, always");
    in.read("draft_tokens_max", engine.limits.draft_tokens_max, 1, 32);
    in.read("draft_model", engine.draft_model);
}

}  // namespace

void read_engine(Reader in, LocalEngine& engine) {
    in.read("enabled", engine.enabled);
    in.read("model", engine.model);
    in.read("name", engine.target.id);
    std::string backends;
    in.read("backends", backends);
    engine.limits.backends = backends;
    in.read("sequences_max", engine.limits.sequences_max, 1, 64);
    in.read("step_tokens_max", engine.limits.step_tokens_max, 32, 8192);
    in.read("context_tokens_max", engine.limits.context_tokens_max, 128, 1 << 20U);
    in.read("waiting_max", engine.limits.inbox_jobs_max, 1, 4096);
    in.read("answer_tokens_default", engine.limits.answer_tokens_default, 1, 1 << 20U);
    in.read("threads", engine.limits.threads, 0, 256);
    std::uint32_t memory_mib = 0;
    in.read("memory_mib", memory_mib, 0, 1 << 20U);
    engine.limits.memory_bytes_max = std::uint64_t{memory_mib} << 20U;
    std::uint32_t adapter_memory_mib = 0;
    in.read("adapter_memory_mib", adapter_memory_mib, 0, 1 << 20U);
    engine.limits.adapter_bytes_max = std::uint64_t{adapter_memory_mib} << 20U;
    auto prefix_mib = static_cast<std::uint32_t>(engine.prefix_bytes_max >> 20U);
    in.read("prefix_disk_mib", prefix_mib, 0, 1 << 24U);
    engine.prefix_bytes_max = std::uint64_t{prefix_mib} << 20U;
    in.read_word("adapter_numbers", engine.limits.adapter_numbers, engine::adapter_numbers_from,
                 "f16, int8");
    in.read("deterministic", engine.limits.deterministic);
    bool together = true;
    in.read("adapters_together", together);
    engine.limits.adapter_route =
        together ? engine::AdapterRoute::automatic : engine::AdapterRoute::one_at_a_time;
    read_speculation(in, engine);
    in.read("quality", engine.target.quality, 0, 1);
    read_confidence(in, engine.target.confidence_min, engine.target.measure);
    in.read("jurisdiction", engine.target.jurisdiction);
    std::vector<std::string> boundaries;
    in.read("boundaries", boundaries);
    engine.target.boundaries = {boundaries.begin(), boundaries.end()};
    in.close();
}

}  // namespace molly::app
