#include <algorithm>
#include <array>
#include <functional>
#include <map>

#include <fmt/format.h>

#include "scenarios/rehearsal.h"

namespace molly::scenarios {
namespace {

using domain::Trace;

std::string joined(const std::vector<std::string>& names, std::string_view separator = " ") {
    return names.empty() ? "nobody" : fmt::format("{}", fmt::join(names, separator));
}

std::string planned(const Trace& trace) {
    std::vector<std::string> names;
    for (const domain::Candidate& candidate : trace.decision.candidates) {
        if (candidate.excluded_by.empty()) names.push_back(candidate.target);
    }
    return joined(names);
}

std::string attempts(const Trace& trace) {
    std::vector<std::string> names;
    for (const domain::Attempt& attempt : trace.attempts) {
        const std::string_view came_to = attempt.failed     ? to_string(*attempt.failed)
                                         : attempt.rejected ? "rejected"
                                                            : "answered";
        const bool step = attempt.cause == domain::Cause::step;
        names.push_back(fmt::format("{}{}{} {}", step ? "" : to_string(attempt.cause),
                                    step ? "" : " ", attempt.target, came_to));
    }
    return joined(names, ", ");
}

std::string specialists(const Trace& trace) {
    std::vector<std::string> names;
    for (const domain::Candidate& candidate : trace.decision.candidates) {
        if (candidate.specialist && candidate.excluded_by.empty())
            names.push_back(candidate.target);
    }
    return joined(names);
}

std::string mixture(const Trace& trace) {
    std::vector<std::string> names;
    for (const domain::Candidate& candidate : trace.decision.candidates) {
        if (candidate.weight > 0) names.push_back(candidate.target);
    }
    return joined(names);
}

std::string signals(const Trace& trace) {
    std::vector<std::string> names;
    for (const domain::Signal& signal : trace.signals)
        names.push_back(signal.source);
    return joined(names);
}

std::string redactions(const Trace& trace) {
    std::vector<std::string> names;
    for (const domain::Attempt& attempt : trace.attempts) {
        for (const auto& [kind, count] : attempt.redactions)
            names.push_back(fmt::format("{} {}", count, to_string(kind)));
    }
    return names.empty() ? "nothing" : joined(names, ", ");
}

using Look = std::function<std::string(const Played&)>;

const std::map<std::string, Look, std::less<>>& looks() {
    static const std::map<std::string, Look, std::less<>> all = {
        {"class",
         [](const Played& p) { return std::string(to_string(p.trace.label.sensitivity)); }},
        {"residency", [](const Played& p) { return to_string(p.trace.label.residency); }},
        {"because of", [](const Played& p) { return signals(p.trace); }},
        {"declassified",
         [](const Played& p) { return std::string(p.trace.declassified ? "yes" : "no"); }},
        {"rule", [](const Played& p) { return p.trace.decision.rule; }},
        {"permitted", [](const Played& p) { return to_string(p.trace.decision.permitted); }},
        {"plan", [](const Played& p) { return planned(p.trace); }},
        {"attempts", [](const Played& p) { return attempts(p.trace); }},
        {"answered by",
         [](const Played& p) { return p.error ? "nobody" : std::string(p.trace.target); }},
        {"caveat",
         [](const Played& p) { return p.trace.caveat.empty() ? "none" : p.trace.caveat; }},
        {"domain",
         [](const Played& p) { return std::string(to_string(p.trace.capability.field())); }},
        {"specialists first", [](const Played& p) { return specialists(p.trace); }},
        {"mixture", [](const Played& p) { return mixture(p.trace); }},
        {"outcome", [](const Played& p) { return std::string(to_string(p.trace.outcome)); }},
        {"code",
         [](const Played& p) {
             return std::string(p.error ? to_string(p.error->code()) : "none");
         }},
        {"reason", [](const Played& p) { return p.error ? p.error->reason() : "none"; }},
        {"redacted", [](const Played& p) { return redactions(p.trace); }},
        {"T3",
         [](const Played& p) {
             return p.trace.decision.t3_closed.empty() ? "open" : p.trace.decision.t3_closed;
         }},
        {"sent to", [](const Played& p) { return joined(p.sent_to); }},
        {"departed", [](const Played& p) { return joined(p.departed); }}};
    return all;
}

/// What only attempts can show.
bool needs_attempts(std::string_view word) noexcept {
    static constexpr std::array<std::string_view, 10> words = {
        "caveat",   "attempts", "answered by", "outcome",    "sent to",
        "departed", "redacted", "sends",       "never sent", "reads"};
    return std::find(words.begin(), words.end(), word) != words.end();
}

/// `excluded: rented because permits T0 T1`
std::string exclusion(const Line& line, const Trace& trace) {
    static constexpr std::string_view because = " because ";
    const auto at = line.rest.find(because);
    if (at == std::string::npos) return "say `excluded: TARGET because WORDS`";
    const std::string target = line.rest.substr(0, at);
    const std::string words = line.rest.substr(at + because.size());
    for (const domain::Candidate& candidate : trace.decision.candidates) {
        if (candidate.target != target) continue;
        if (candidate.excluded_by.find(words) != std::string::npos) return {};
        return candidate.excluded_by.empty() ? target + " is not excluded"
                                             : "it is excluded because " + candidate.excluded_by;
    }
    return target + " was no candidate";
}

std::string difference(const Line& line, const Played& played) {
    if (line.word == "excluded") return exclusion(line, played.trace);
    if (line.word == "never sent" || line.word == "sends") {
        const bool wanted = line.word == "sends";
        return (played.bytes.find(line.rest) != std::string::npos) == wanted
                   ? ""
                   : (wanted ? "nobody got it" : "somebody got it");
    }
    if (line.word == "reads") {
        return played.answer.find(line.rest) != std::string::npos ? ""
                                                                  : "it reads: " + played.answer;
    }
    if (line.word == "says") {
        const std::string said = played.error ? played.error->message() : "nothing";
        return said.find(line.rest) != std::string::npos ? "" : "it says: " + said;
    }
    const auto look = looks().find(line.word);
    if (look == looks().end()) return "nobody knows what that means";
    const std::string found = look->second(played);
    return found == line.rest ? "" : "it is: " + found;
}

}  // namespace

Differences differences(const std::vector<Line>& expected, const Played& played) {
    Differences all;
    if (played.trace.id.empty()) all.found.emplace_back("the request left no trace");
    for (const Line& line : expected) {
        if (!played.attempted && needs_attempts(line.word)) {
            ++all.unchecked;
            continue;
        }
        ++all.checked;
        const std::string differs = difference(line, played);
        if (differs.empty()) continue;
        all.found.push_back(
            fmt::format("line {}: `{}: {}`, but {}", line.number, line.word, line.rest, differs));
    }
    return all;
}

}  // namespace molly::scenarios
