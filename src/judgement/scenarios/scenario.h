#pragma once
// A placement scenario as people write it: who asks, what is declared, and what must happen.
// docs/policy.md and tests/scenarios/README.md explain the words. Pure; takes any bytes.
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "annotate/annotate.h"
#include "base/result.h"
#include "domain/request.h"
#include "domain/target.h"
#include "policy/policy_engine.h"
#include "router/router.h"

namespace molly::scenarios {

/// One line below a block: `word: rest`, with its place for messages.
struct Line {
    int number = 0;
    std::string word;
    std::string rest;
};

/// One block: its heading (`target office`), the rest of the heading's line, the lines below.
struct Block {
    Line heading;
    std::vector<Line> lines;
};

/// How a played target behaves.
enum class State : std::uint8_t { up, down, busy, broken, refusing, dies_early, dies_midway };

/// How a played target does from now on; what is not said stays as it was.
struct Manner {
    std::optional<State> state;
    std::optional<std::chrono::milliseconds> takes;  ///< before its first word
    std::optional<double> sureness;                  ///< probability of each of its tokens
    std::optional<std::vector<std::string>> says;    ///< its answers, in turn
};

struct DeclaredTarget {
    domain::TargetSpec spec;
    Manner manner{
        .state = State::up, .takes = std::nullopt, .sureness = std::nullopt, .says = std::nullopt};
};

/// What happens, in order: a request with what is expected of it, or a change of the world.
struct Event {
    enum class Kind : std::uint8_t { ask, wait, turn };
    Kind kind = Kind::ask;
    int number = 0;
    domain::Request request;
    std::vector<Line> expected;
    std::chrono::milliseconds wait{0};
    std::string target;
    Manner manner;
};

struct Scenario {
    std::string title;
    std::vector<DeclaredTarget> targets;
    std::vector<std::pair<std::string, domain::Caller>> keys;
    std::map<std::string, domain::Money> budgets;  ///< of keys, by id
    annotate::Options labels;
    policy::Options policy;
    router::Options routing;
    std::vector<Event> events;
};

/// Cuts a text into blocks. Errors: invalid_request with the line.
Result<std::vector<Block>> blocks_of(const std::string& text);

/// Reads a scenario that goes on from `base` (targets, rules, aliases), unless it declares targets
/// of its own: then it stands alone. Errors: invalid_request with the line and what it does not
/// understand.
Result<Scenario> read_scenario(const std::string& text, Scenario base = {});

/// Fills a request from the lines below `ask`. Errors: invalid_request with the line.
Result<void> read_request(const std::vector<Line>& lines, domain::Request& request);

/// Splits at `separator`, trimmed.
std::vector<std::string> split(const std::string& text, char separator);
std::string trim(const std::string& text);
/// The first word of `text`, which is left with the rest.
std::string take_word(std::string& text);
/// Numbers, whole or not, that begin `text`; nothing when it does not begin with one.
std::optional<double> number_from(std::string_view text) noexcept;
std::optional<std::uint32_t> count_from(std::string_view text) noexcept;
/// An error that names the line.
Error at_line(int number, const std::string& what);

}  // namespace molly::scenarios
