#pragma once
// Plays a scenario without a network, a model or a clock: label, permit and plan are the real ones,
// nothing is attempted. Pure; one thread at a time.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "domain/trace.h"
#include "scenarios/scenario.h"

namespace molly::scenarios {

/// What one request came to.
struct Played {
    domain::Trace trace;
    std::optional<Error> error;
    bool attempted = false;             ///< whether targets were asked at all
    std::vector<std::string> sent_to;   ///< targets whose endpoint got bytes
    std::vector<std::string> departed;  ///< targets of committed departures
    std::string bytes;                  ///< all that endpoints got
    std::string answer;                 ///< as the caller reads it
};

/// How what happened compares with what was expected.
struct Differences {
    std::vector<std::string> found;  ///< a sentence each
    std::uint32_t checked = 0;
    std::uint32_t unchecked = 0;  ///< expectations that only attempts could show
};
Differences differences(const std::vector<Line>& expected, const Played& played);

class Rehearsal {
public:
    /// Errors: invalid_request (a pattern of a label rule).
    static Result<std::unique_ptr<Rehearsal>> make(const Scenario& scenario);

    /// Labels stick to conversations that the scenario names.
    Played ask(domain::Request request);

private:
    explicit Rehearsal(const Scenario& scenario);
    Result<void> place(domain::Request request, domain::Trace& trace);

    policy::PolicyEngine policy_;
    router::Options routing_;
    std::unique_ptr<annotate::Annotator> annotator_;
    std::vector<router::TargetView> views_;
    std::vector<std::string> names_;
    std::map<std::string, domain::Label> labels_;  // by conversation
    int asked_ = 0;
};

}  // namespace molly::scenarios
