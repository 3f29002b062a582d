#include "engine/internal/grammar_matcher.h"

#include <algorithm>
#include <utility>

namespace molly::engine {
namespace {

using Kind = GrammarElement::Kind;

}  // namespace

GrammarMatcher::GrammarMatcher(std::shared_ptr<const Grammar> grammar, MatcherLimits limits)
    : grammar_(std::move(grammar)), limits_(limits) {
    nodes_.push_back({0, 0});
    seen_.push_back(0);
    start();
}

void GrammarMatcher::start() {
    intern({});  // the dead state
    std::vector<Stack> todo;
    for (const std::uint32_t body : grammar_->bodies(grammar_->root())) {
        const bool empty = grammar_->element(body).kind == Kind::end;
        todo.push_back(empty ? 0 : push(body, 0));
    }
    std::vector<Stack> stacks;
    expand(std::move(todo), stacks);
    current_ = intern(std::move(stacks));
}

GrammarMatcher::Stack GrammarMatcher::push(std::uint32_t element, Stack below) {
    const std::uint64_t key = (std::uint64_t{element} << 32U) | below;
    const auto [found, added] = node_ids_.emplace(key, static_cast<Stack>(nodes_.size()));
    if (added) {
        if (nodes_.size() >= limits_.nodes_max) overflow_ = true;
        nodes_.push_back({element, below});
        seen_.push_back(0);
    }
    return found->second;
}

/// The stack once its top element has been read.
GrammarMatcher::Stack GrammarMatcher::after_element(Stack stack) {
    const Node top = nodes_[stack];
    const bool last = grammar_->element(top.element + 1).kind == Kind::end;
    return last ? top.below : push(top.element + 1, top.below);
}

/// Replaces rules on top by their bodies until every stack is empty or begins with bytes or tokens.
void GrammarMatcher::expand(std::vector<Stack> todo, std::vector<Stack>& out) {
    ++expansion_;
    while (!todo.empty() && !overflow_) {
        const Stack stack = todo.back();
        todo.pop_back();
        if (seen_[stack] == expansion_) continue;
        seen_[stack] = expansion_;
        if (++work_ > limits_.work_max) overflow_ = true;
        const GrammarElement top =
            stack == 0 ? GrammarElement{} : grammar_->element(nodes_[stack].element);
        if (top.kind != Kind::rule) {
            out.push_back(stack);
            if (out.size() > limits_.stacks_max) overflow_ = true;
            continue;
        }
        const Stack rest = after_element(stack);
        for (const std::uint32_t body : grammar_->bodies(top.value)) {
            const bool empty = grammar_->element(body).kind == Kind::end;
            todo.push_back(empty ? rest : push(body, rest));
        }
    }
}

GrammarMatcher::State GrammarMatcher::intern(std::vector<Stack> stacks) {
    std::ranges::sort(stacks);
    const auto repeated = std::ranges::unique(stacks);
    stacks.erase(repeated.begin(), repeated.end());
    const auto known = state_ids_.find(stacks);
    if (known != state_ids_.end()) return known->second;
    if (states_.size() >= limits_.states_max) overflow_ = true;
    const auto id = static_cast<State>(states_.size());
    StateRow data;
    data.next.fill(unknown);
    for (const Stack stack : stacks) {
        if (stack == 0) {
            data.may_end = true;
        } else if (grammar_->element(nodes_[stack].element).kind != Kind::bytes) {
            data.names_tokens = true;
        }
    }
    state_ids_.emplace(stacks, id);
    data.stacks = std::move(stacks);
    states_.push_back(std::move(data));
    return id;
}

GrammarMatcher::State GrammarMatcher::explore(State from, std::uint8_t byte) {
    if (overflow_) return dead;
    std::vector<Stack> todo;
    const std::vector<Stack> stacks = states_[from].stacks;
    for (const Stack stack : stacks) {
        if (++work_ > limits_.work_max) overflow_ = true;
        if (stack == 0) continue;
        const GrammarElement top = grammar_->element(nodes_[stack].element);
        if (top.kind == Kind::bytes && grammar_->bytes(top.value).test(byte)) {
            todo.push_back(after_element(stack));
        }
    }
    std::vector<Stack> reached;
    expand(std::move(todo), reached);
    if (overflow_) return dead;
    const State next = intern(std::move(reached));
    states_[from].next[byte] = next;
    return next;
}

Result<void> GrammarMatcher::check() const {
    if (!overflow_) return {};
    return fail(Error(ErrorCode::exhausted,
                      "the grammar or schema is too ambiguous to follow; make its alternatives "
                      "begin differently")
                    .italian("la grammatica o lo schema è troppo ambiguo; le alternative devono "
                             "cominciare in modo diverso"));
}

Result<GrammarMatcher::State> GrammarMatcher::checked(State state) const {
    TRY_DO(check());
    return state;
}

Result<GrammarMatcher::State> GrammarMatcher::after(State from, std::string_view bytes) {
    State state = from;
    for (const char byte : bytes) {
        if (state == dead || overflow_) break;
        state = step(state, static_cast<std::uint8_t>(byte));
    }
    return checked(state);
}

Result<GrammarMatcher::State> GrammarMatcher::after_token(State from, std::uint32_t token) {
    if (!states_[from].names_tokens) return checked(dead);
    std::vector<Stack> todo;
    const std::vector<Stack> stacks = states_[from].stacks;
    for (const Stack stack : stacks) {
        if (stack == 0) continue;
        const GrammarElement top = grammar_->element(nodes_[stack].element);
        const bool same = top.value == token;
        if ((top.kind == Kind::token && same) || (top.kind == Kind::not_token && !same)) {
            todo.push_back(after_element(stack));
        }
    }
    std::vector<Stack> reached;
    expand(std::move(todo), reached);
    return checked(overflow_ ? dead : intern(std::move(reached)));
}

Result<GrammarMatcher::State> GrammarMatcher::after_either(State from, std::uint32_t token,
                                                           std::string_view bytes) {
    TRY(const State by_bytes, bytes.empty() ? checked(dead) : after(from, bytes));
    if (!states_[from].names_tokens) return by_bytes;
    TRY(const State by_token, after_token(from, token));
    if (by_token == dead) return by_bytes;
    if (by_bytes == dead) return by_token;
    std::vector<Stack> both = states_[by_bytes].stacks;
    const auto& more = states_[by_token].stacks;
    both.insert(both.end(), more.begin(), more.end());
    return checked(intern(std::move(both)));
}

void GrammarMatcher::move_to(State state) {
    constexpr std::size_t states_kept_max = 4'096;
    current_ = state;
    if (states_.size() <= states_kept_max) return;
    std::vector<Stack> stacks = std::move(states_[state].stacks);
    states_.clear();
    state_ids_.clear();
    intern({});
    current_ = intern(std::move(stacks));
}

}  // namespace molly::engine
