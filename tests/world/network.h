#pragma once
// Everything outside this process: endpoints that behave as scripted and remember every byte that
// they got. One thread.
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "net/connector.h"
#include "world/clock.h"

namespace molly::world {

/// How an endpoint treats the next request.
enum class Behaviour : std::uint8_t {
    answers,
    unreachable,      ///< nothing was accepted
    limits,           ///< 429 with retry-after
    fails,            ///< 500
    refuses,          ///< 400
    unauthenticated,  ///< 401, and it quotes the key
    dies_early,       ///< accepts the body, then breaks off
    dies_midway,      ///< after the first words
    garbles           ///< a chunk that is no JSON
};

/// One exchange as an endpoint saw it.
struct Seen {
    std::string target;
    domain::Tier tier = domain::Tier::t0;
    std::string bytes;                ///< path, header values and body
    std::size_t departures_then = 0;  ///< committed when the bytes came
};

class Network final : public net::Connector {
public:
    explicit Network(SimulatedClock& clock) : clock_(clock) {}

    Task<Result<void>> exchange(const policy::Permit& permit, const domain::TargetSpec& target,
                                net::OutboundRequest request, net::ReplySink& sink,
                                net::Wire& wire) override;

    std::function<Behaviour(const std::string& target)> behaviour;
    std::function<Duration()> delay;                ///< before each step of an exchange
    std::function<std::size_t()> departures_count;  ///< committed so far
    /// What a target answers; without it, one word.
    std::function<std::string(const std::string& target, const net::OutboundRequest& request)> says;
    std::function<Duration(const std::string& target)> slowness;  ///< before its reply
    /// Probability of each of its tokens, told where log-probabilities are asked for.
    std::function<double(const std::string& target)> sureness;
    bool ignores_permits = false;  ///< a planted fault

    std::vector<Seen> seen;

private:
    std::vector<std::string> pieces_of(const std::string& target,
                                       const net::OutboundRequest& request) const;
    Task<Result<void>> pause(const net::OutboundRequest& request);
    Task<Result<void>> reply(const std::string& target, Behaviour how,
                             const net::OutboundRequest& request, net::ReplySink& sink,
                             net::Wire& wire);
    Task<Result<void>> status(int code, std::string body, net::ReplySink& sink, net::Wire& wire);

    SimulatedClock& clock_;
};

/// A local model that says one word, or fails as scripted.
class Engine final : public engine::Engine {
public:
    explicit Engine(SimulatedClock& clock) : clock_(clock) {}

    Task<Result<void>> generate(const domain::Request& request, engine::DeltaSink& sink) override;
    Task<Result<engine::Embeddings>> embed(const domain::Request& request) override;
    const engine::Description& describe() const noexcept override { return description_; }
    engine::Load load() const noexcept override { return {.running = running_, .waiting = 0}; }

    std::function<Behaviour(const std::string& target)> behaviour;
    std::function<Duration()> delay;
    std::function<double()> sureness;   ///< probability of each of its tokens
    std::function<std::string()> says;  ///< what it answers; without it, one word
    std::uint32_t running_max = 0;      ///< the most that ran at once

private:
    SimulatedClock& clock_;
    engine::Description description_{};
    std::uint32_t running_ = 0;
};

}  // namespace molly::world
