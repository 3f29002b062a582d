#include "stage.h"

#include "base/coroutine.h"

namespace molly::scenarios {
namespace {

class Edge final : public pipeline::AnswerSink {
public:
    Task<Result<void>> begin(const pipeline::Served& /*served*/) override {
        co_return Result<void>();
    }
    Task<Result<void>> write(const domain::Delta& delta) override {
        text += delta.text;
        co_return Result<void>();
    }
    std::string text;
};

/// One word, and every placeholder that the request has, as a model would quote them.
std::string echo(const net::OutboundRequest& request) {
    std::string words = "hello";
    for (auto at = request.body.find("[IBAN_"); at != std::string::npos;
         at = request.body.find("[IBAN_", at + 1))
        words += " " + request.body.substr(at, request.body.find(']', at) + 1 - at);
    return words;
}

world::Behaviour behaviour_of(State state) {
    switch (state) {
        case State::up:
            return world::Behaviour::answers;
        case State::down:
            return world::Behaviour::unreachable;
        case State::busy:
            return world::Behaviour::limits;
        case State::broken:
            return world::Behaviour::fails;
        case State::refusing:
            return world::Behaviour::refuses;
        case State::dies_early:
            return world::Behaviour::dies_early;
        case State::dies_midway:
            break;
    }
    return world::Behaviour::dies_midway;
}

}  // namespace

Stage::Stage(const Scenario& scenario)
    : policy_(scenario.policy), routing_(scenario.routing), health_(routing_, clock_) {
    members_.budgets = scenario.budgets;
    for (const DeclaredTarget& declared : scenario.targets) {
        auto spec = std::make_shared<const domain::TargetSpec>(declared.spec);
        targets_.push_back(spec->local ? targets::make_local_target(spec, engine_of(spec->id))
                                       : targets::make_remote_target(spec, network_, "sk-key"));
        turn(spec->id, declared.manner);
    }
    const auto behaviour = [this](const std::string& target) { return playing_[target].behaviour; };
    network_.behaviour = behaviour;
    network_.slowness = [this](const std::string& target) { return playing_[target].takes; };
    network_.sureness = [this](const std::string& target) { return playing_[target].sureness; };
    network_.says = [this](const std::string& target, const net::OutboundRequest& request) {
        return words_of(target, echo(request));
    };
    network_.departures_count = [this] { return store_.departures.size(); };
}

/// What the target says next.
std::string Stage::words_of(const std::string& target, std::string otherwise) {
    Playing& playing = playing_[target];
    if (playing.says.empty()) return otherwise;
    return playing.says[playing.said++ % playing.says.size()];
}

world::Engine& Stage::engine_of(const std::string& target) {
    world::Engine& engine = *engines_.emplace_back(std::make_unique<world::Engine>(clock_));
    engine.behaviour = [this, target](const std::string& /*engine*/) {
        return playing_[target].behaviour;
    };
    engine.sureness = [this, target] { return playing_[target].sureness; };
    engine.delay = [this, target] { return playing_[target].takes; };
    engine.says = [this, target] { return words_of(target, "hello"); };
    return engine;
}

Result<std::unique_ptr<Stage>> Stage::make(const Scenario& scenario) {
    std::unique_ptr<Stage> stage(new Stage(scenario));
    TRY(stage->annotator_, annotate::Annotator::make(scenario.labels));
    std::vector<targets::Target*> all;
    for (const auto& target : stage->targets_)
        all.push_back(target.get());
    pipeline::Parts parts{*stage->annotator_, stage->policy_,  stage->store_,  stage->members_,
                          stage->health_,     stage->routing_, std::move(all), stage->metrics_,
                          stage->clock_,      "scenario"};
    parts.estimates = &stage->estimates_;
    parts.confidences = &stage->confidences_;
    stage->pipeline_ = std::make_unique<pipeline::Pipeline>(std::move(parts), pipeline::Options{});
    return stage;
}

void Stage::turn(const std::string& target, const Manner& manner) {
    if (target == "engine") {  // all that this device has
        for (const auto& one : targets_) {
            if (one->spec().local) turn(one->spec().id, manner);
        }
        return;
    }
    Playing& playing = playing_[target];
    if (manner.state) playing.behaviour = behaviour_of(*manner.state);
    if (manner.takes) playing.takes = *manner.takes;
    if (manner.sureness) playing.sureness = *manner.sureness;
    if (manner.says) playing.says = *manner.says;
    if (manner.says) playing.said = 0;
}

Played Stage::ask(domain::Request request) {
    request.id = "request-" + std::to_string(++asked_);
    request.dialect = "openai";
    request.received = clock_.now();
    const std::string id = request.id;
    members::Key key{};
    key.id = request.caller.key_id;
    store_.departures.clear();
    network_.seen.clear();
    std::optional<Result<pipeline::Answered>> answered;
    Edge edge;
    spawn(io_.get_executor(), [&]() -> Task<void> {
        answered = co_await pipeline_->run(std::move(request), key, edge);
    });
    do {
        io_.poll();
        io_.restart();
    } while (!answered && clock_.advance());
    Played played;
    played.attempted = true;
    if (!*answered) played.error = answered->error();
    if (!store_.committed.empty() && store_.committed.back().id == id)
        played.trace = store_.committed.back();
    for (const world::Seen& seen : network_.seen) {
        played.sent_to.push_back(seen.target);
        played.bytes += seen.bytes;
    }
    played.answer = *answered ? (*answered)->response.text.text() : edge.text;
    for (const store::Departure& departure : store_.departures)
        played.departed.push_back(departure.target);
    return played;
}

}  // namespace molly::scenarios
