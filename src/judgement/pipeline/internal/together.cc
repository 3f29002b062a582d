// Several targets at once: a mixture of specialists, and a second one that is asked because the
// first is slow.
#include <algorithm>
#include <array>
#include <utility>

#include "base/channel.h"
#include "base/coroutine.h"
#include "base/gather.h"
#include "pipeline/internal/agreement.h"
#include "pipeline/internal/attempts.h"

namespace molly::pipeline {

using std::chrono::duration_cast;
using std::chrono::microseconds;

/// Asks the specialists of a mixture at once. The best is the one with most for it: each answer's
/// share of the request times what is believed of its author, and the same of others as far as they
/// agree with it. Nothing when none answered, or the best is held.
Task<Result<std::optional<Outcome>>> Attempts::mix() {
    const std::vector<Step>& steps = prepared_.plan.steps;
    if (auto wanted = still_wanted(); !wanted) {
        last_ = std::move(wanted).error();
        over_ = true;
        co_return fail(last_);
    }
    std::vector<Tried> tried;
    std::vector<std::function<Task<void>()>> tasks;
    for (std::size_t at = 0; at < prepared_.plan.mixture; ++at) {
        if (!venture_.parts.health.admit(steps[at].target->id)) continue;
        Attempt::Manner manner;
        manner.cause = domain::Cause::mixture;
        manner.release = Release::on_word;
        manner.measures = measures(steps[at]);
        Attempt* attempt =
            tried.emplace_back(std::make_unique<Attempt>(venture_, steps[at], std::move(manner)))
                .get();
        tasks.emplace_back([attempt]() { return attempt->run(); });
    }
    co_await gather(std::move(tasks));
    std::vector<Voice> voices;
    std::vector<std::size_t> speakers;
    for (std::size_t i = 0; i < tried.size(); ++i) {
        if (!tried[i]->answered()) {
            fell(*tried[i]);
            continue;
        }
        tried[i]->line().rejected = true;
        const bool empty = tried[i]->relay().empty();
        const Step& step = tried[i]->step();
        voices.push_back(
            {.text = tried[i]->relay().text(), .weight = empty ? 0 : step.weight * step.quality});
        speakers.push_back(i);
    }
    if (speakers.empty()) co_return fail(last_);
    over_ = false;  // somebody answered: what befell the others ends nothing
    const bool sums = venture_.trace.capability.task == domain::TaskType::reason;
    Tried best = std::move(tried[speakers[best_of(support(voices, sums))]]);
    best->line().rejected = false;
    const bool may_reject = rises_above(best->step(), prepared_.plan.mixture, {});
    const std::optional<Sureness> sureness = co_await sureness_of(*best, may_reject);
    co_return co_await conclude(std::move(best), sureness, may_reject);
}

/// How long the first word of this step's target is waited for before another one is asked.
std::optional<std::chrono::milliseconds> Attempts::patience_with(const Step& step) const {
    const router::Options& routing = venture_.parts.routing;
    if (!routing.hedge) return std::nullopt;
    if (routing.hedge_after.count() > 0) return routing.hedge_after;
    return venture_.parts.health.slow_first_token(step.target->id);
}

/// The step that may be asked beside this one when it is slow.
std::optional<std::size_t> Attempts::rival_of(std::size_t at) const {
    const std::vector<Step>& steps = prepared_.plan.steps;
    if (!prepared_.several || request_.operation == domain::Operation::embed ||
        !patience_with(steps[at]))
        return std::nullopt;
    const bool paid_too = venture_.parts.routing.hedge_paid;
    const auto may_be_wasted = [&](const Step& step) {
        return paid_too || step.target->prices == domain::Prices{};
    };
    if (!may_be_wasted(steps[at])) return std::nullopt;
    for (std::size_t i = at + 1; i < steps.size(); ++i) {
        if (used_[i] || steps[i].target == steps[at].target || !may_be_wasted(steps[i])) continue;
        // Nor does a doubtful answer's own tier get a second word.
        if (held_ && steps[i].target->tier <= held_->tier) continue;
        if (affordable(steps[i].cost, steps[at].cost) &&
            in_time(steps[i], *patience_with(steps[at])))
            return i;
    }
    return std::nullopt;
}

/// One of the two that race, with an end of its own.
struct Attempts::Runner {
    CancellationPtr cancellation = std::make_shared<Cancellation>();
    std::unique_ptr<CancelSubscription> caller;  // who leaves ends both
    Tried attempt;
};

struct Attempts::Race {
    enum class Event : std::uint8_t { patience_over, ended };
    std::shared_ptr<Channel<Event>> events = std::make_shared<Channel<Event>>(8);
    std::array<Runner, 2> runners;
    std::size_t running = 0;
    std::optional<std::size_t> winner;  // whoever spoke first

    /// Whether this one may speak: the first who asks may.
    bool may_speak(std::size_t number) {
        if (!winner) {
            winner = number;
            runners[1 - number].cancellation->cancel();
        }
        return *winner == number;
    }
};

/// Starts one of the two.
void Attempts::start(const std::shared_ptr<Race>& race, std::size_t number, const Step& step) {
    Runner& runner = race->runners[number];
    runner.caller = std::make_unique<CancelSubscription>(
        request_.cancellation, [cancellation = runner.cancellation]() { cancellation->cancel(); });
    Attempt::Manner manner;
    manner.cause = number == 0 ? domain::Cause::step : domain::Cause::hedge;
    manner.measures = measures(step);
    manner.cleared =
        variant([&](domain::Request& request) { request.cancellation = runner.cancellation; });
    manner.may_speak = [race = race.get(), number]() { return race->may_speak(number); };
    runner.attempt = std::make_unique<Attempt>(venture_, step, std::move(manner));
    ++race->running;
}

/// Runs the race to the end of both.
Task<void> Attempts::run_race(const std::shared_ptr<Race>& race, std::size_t at,
                              std::size_t rival) {
    const Executor executor = co_await boost::asio::this_coro::executor;
    const std::vector<Step>& steps = prepared_.plan.steps;
    const auto run = [&](std::size_t number, const Step& step) {
        start(race, number, step);
        spawn(executor, [race, number]() -> Task<void> {
            co_await race->runners[number].attempt->run();
            race->events->try_send(Race::Event::ended);
        });
    };
    run(0, steps[at]);
    const MonoTime over = venture_.parts.clock.now() + *patience_with(steps[at]);
    // It may outlast the race, and then keeps nothing of it.
    spawn(executor, [events = race->events, over, clock = &venture_.parts.clock]() -> Task<void> {
        co_await clock->sleep_until(over);
        events->try_send(Race::Event::patience_over);
    });
    while (race->running > 0) {
        const Race::Event event = co_await race->events->receive();
        if (event == Race::Event::ended) --race->running;
        const bool late = event == Race::Event::patience_over && race->running > 0 && !race->winner;
        if (!late || !still_wanted() || !venture_.parts.health.admit(steps[rival].target->id))
            continue;
        used_[rival] = true;
        run(1, steps[rival]);
    }
}

/// The line of the other one says that it was given up, and if it was slow that is known.
void Attempts::note_loser(const Attempt& loser) {
    domain::Attempt& line = loser.line();
    line.rejected = true;
    if (line.failed != ErrorCode::cancelled) return;
    line.failure = "hedge_lost";
    if (!loser.relay().first_at()) venture_.parts.health.lagged(line.target, line.duration);
}

/// Asks one target, and another one too when the first has not begun to answer in good time. The
/// first word wins; the other is given up.
Task<Result<std::optional<Outcome>>> Attempts::race(std::size_t at, std::size_t rival) {
    const auto race = std::make_shared<Race>();
    co_await run_race(race, at, rival);
    std::size_t told = race->winner.value_or(0);
    const bool second = race->runners[1].attempt != nullptr;
    bool paid_twice = false;  // could be, if anybody else were asked
    for (const Runner& runner : race->runners)
        paid_twice = paid_twice || (runner.attempt != nullptr && runner.attempt->last_word());
    // Nobody spoke: who answered all the same, else the one that was asked last.
    if (!race->winner && second && !race->runners[0].attempt->answered()) told = 1;
    Tried attempt = std::move(race->runners[told].attempt);
    begun_ = attempt->relay().begun();
    if (second && (begun_ || attempt->answered())) note_loser(*race->runners[1 - told].attempt);
    if (second && attempt->relay().first_at()) {
        venture_.trace.first_token =
            duration_cast<microseconds>(*attempt->relay().first_at() - venture_.started);
    }
    if (!attempt->answered()) {
        fell(*attempt);
        over_ = over_ || paid_twice;
        co_return fail(last_);
    }
    const std::optional<Sureness> sureness = co_await sureness_of(*attempt, false);
    co_return co_await conclude(std::move(attempt), sureness, false);
}

}  // namespace molly::pipeline
