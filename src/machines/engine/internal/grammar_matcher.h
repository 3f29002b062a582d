#pragma once
// Follows a Grammar byte by byte: a pushdown automaton whose sets of stacks become the states of a
// deterministic one, built as it is walked. All work is bounded. One thread at a time.
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "engine/internal/grammar.h"

namespace molly::engine {

struct MatcherLimits {
    std::size_t stacks_max = 4'000;     ///< alternatives that are alive at once
    std::size_t nodes_max = 1'000'000;  ///< places on all stacks
    std::size_t states_max = 16'384;    ///< one kilobyte each
    std::size_t work_max = 3'000'000;   ///< stack steps between two calls of begin_work
};

class GrammarMatcher {
public:
    using State = std::uint32_t;
    static constexpr State dead = 0;

    explicit GrammarMatcher(std::shared_ptr<const Grammar> grammar, MatcherLimits limits = {});

    State current() const noexcept { return current_; }
    /// Makes `state` the current one; other states may be forgotten.
    void move_to(State state);
    /// Allows another `work_max` steps.
    void begin_work() noexcept { work_ = 0; }

    /// Errors: exhausted, when the grammar is too ambiguous to follow within the limits.
    Result<State> after(State from, std::string_view bytes);
    /// The same for one byte, for walks over a whole vocabulary: ask `check` when it is over.
    State step(State from, std::uint8_t byte) {
        const State known = states_[from].next[byte];
        return known != unknown ? known : explore(from, byte);
    }
    Result<void> check() const;
    /// After a token that the grammar names by id; dead when it names none that fits.
    Result<State> after_token(State from, std::uint32_t token);
    /// Both of the above together: the token may fit by its bytes, by its id, or by both.
    Result<State> after_either(State from, std::uint32_t token, std::string_view bytes);
    bool names_tokens(State state) const { return states_[state].names_tokens; }
    /// Whether the text may end here.
    bool may_end(State state) const { return states_[state].may_end; }

private:
    using Stack = std::uint32_t;  // a node; 0 is the empty stack
    struct Node {
        std::uint32_t element;
        Stack below;
    };
    struct StateRow {
        std::vector<Stack> stacks;  // sorted
        std::array<State, 256> next;
        bool may_end = false;
        bool names_tokens = false;
    };
    static constexpr State unknown = ~State{0};

    Stack push(std::uint32_t element, Stack below);
    Stack after_element(Stack stack);
    void expand(std::vector<Stack> todo, std::vector<Stack>& out);
    State intern(std::vector<Stack> stacks);
    State explore(State from, std::uint8_t byte);
    Result<State> checked(State state) const;
    void start();

    std::shared_ptr<const Grammar> grammar_;
    MatcherLimits limits_;
    std::vector<Node> nodes_;
    std::unordered_map<std::uint64_t, Stack> node_ids_;
    std::vector<StateRow> states_;
    std::map<std::vector<Stack>, State> state_ids_;
    std::vector<std::uint32_t> seen_;  // per node: the expansion that saw it last
    std::uint32_t expansion_ = 0;
    std::size_t work_ = 0;
    bool overflow_ = false;
    State current_ = dead;
};

}  // namespace molly::engine
