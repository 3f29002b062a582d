#pragma once
// The far end of one exchange: takes the answer, may leave early, minds the order of calls. One
// thread.
#include <functional>
#include <string>

#include "net/http.h"
#include "world/clock.h"

namespace molly::simulation {

class CallerEnd final : public net::Responder {
public:
    CallerEnd(world::SimulatedClock& clock, std::function<Duration()> delay)
        : clock_(clock), delay_(std::move(delay)) {}

    Task<Result<void>> reply(net::HttpReply reply) override;
    Task<Result<void>> begin(int status, net::Headers headers) override;
    Task<Result<void>> write(std::string_view piece) override;
    Task<Result<void>> finish() override;
    const CancellationPtr& cancellation() const noexcept override { return cancellation_; }

    void leave() { cancellation_->cancel(); }

    int status = 0;
    net::Headers headers;
    std::string body;
    int answers = 0;     ///< replies and beginnings
    bool ended = false;  ///< whole
    bool disorder = false;
    std::function<void()> before_last_byte;

private:
    Task<Result<void>> take(std::string_view bytes);

    world::SimulatedClock& clock_;
    std::function<Duration()> delay_;
    CancellationPtr cancellation_ = std::make_shared<Cancellation>();
};

}  // namespace molly::simulation
