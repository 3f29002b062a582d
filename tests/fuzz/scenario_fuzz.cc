// A scenario from anybody: the reader says which line it does not understand, or the rehearsal
// plays it to the end.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/assert.h"
#include "scenarios/rehearsal.h"

using namespace molly;  // NOLINT(google-build-using-namespace): a fuzzer is one small program

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
    const void* start = bytes;
    const auto scenario =
        scenarios::read_scenario(std::string(static_cast<const char*>(start), size));
    if (!scenario) {
        MOLLY_ASSERT(scenario.error().code() == ErrorCode::invalid_request);
        return 0;
    }
    const auto rehearsal = scenarios::Rehearsal::make(*scenario);
    if (!rehearsal) return 0;
    for (const scenarios::Event& event : scenario->events) {
        if (event.kind != scenarios::Event::Kind::ask) continue;
        const scenarios::Played played = (*rehearsal)->ask(event.request);
        const auto all = differences(event.expected, played);
        MOLLY_ASSERT(all.checked + all.unchecked == event.expected.size());
        // What the label forbids is never permitted, whatever the rules say.
        const auto tiers = domain::tiers_of(played.trace.label.sensitivity);
        for (const domain::Tier tier : {domain::Tier::t0, domain::Tier::t1, domain::Tier::t2}) {
            MOLLY_ASSERT(!played.trace.decision.permitted.contains(tier) || tiers.contains(tier));
        }
    }
    return 0;
}
