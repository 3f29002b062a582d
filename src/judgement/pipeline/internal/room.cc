#include "pipeline/internal/room.h"

#include <algorithm>
#include <optional>

#include "pipeline/internal/verifier.h"

namespace molly::pipeline {
namespace {

using Step = router::Plan::Step;

void add(Room& room, domain::Money cost, std::uint32_t answers = 1) {
    room.answers += answers;
    for (std::uint32_t i = 0; i < answers; ++i)
        room.cost += cost;
}

/// What an answer of this step takes, with what tells its worth.
void add_step(Room& room, const Step& step, const domain::CapabilityProfile& needs,
              const Parts& parts) {
    const bool measured = step.confidence_min > 0;
    const bool samples = measured && step.measure.source == domain::ConfidenceSource::samples;
    add(room, step.cost, samples ? std::max(1U, step.measure.samples) : 1);
    const auto verifier = measured ? verifier_of(step, parts) : std::nullopt;
    if (verifier) add(room, router::verification_cost(needs, *verifier->target));
}

}  // namespace

Room room_of(const router::Plan& plan, const domain::CapabilityProfile& needs, const Parts& parts) {
    Room room;
    std::optional<domain::Tier> reached;
    std::size_t first_alone = plan.steps.size();
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        const Step& step = plan.steps[i];
        const bool mixed = i < plan.mixture;
        if (!mixed && reached && step.target->tier <= *reached) continue;
        if (!mixed) first_alone = std::min(first_alone, i);
        add_step(room, step, needs, parts);
        reached = step.target->tier;
        if (i + 1 >= plan.mixture && !(step.confidence_min > 0)) break;
    }
    if (!parts.routing.hedge || first_alone + 1 >= plan.steps.size()) return room;
    domain::Money dearest;
    for (std::size_t i = first_alone + 1; i < plan.steps.size(); ++i) {
        const bool paid = plan.steps[i].target->prices != domain::Prices{};
        if (!paid || parts.routing.hedge_paid) dearest = std::max(dearest, plan.steps[i].cost);
    }
    add(room, dearest);
    return room;
}

}  // namespace molly::pipeline
