#pragma once
// The bytes of one streamed answer, kept alive while the target thinks.
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/channel.h"
#include "base/clock.h"
#include "base/coroutine.h"
#include "dialects/dialects.h"
#include "net/http.h"
#include "pipeline/pipeline.h"

namespace molly::gateway {

/// What a stream is made of once it is known who answers.
struct Opening {
    net::Headers headers;
    std::unique_ptr<dialects::StreamEncoder> encoder;
};
/// Makes it; without `served` nobody has answered yet and the connection only has to be kept open.
using Opener = std::function<Opening(const pipeline::Served* served)>;

/// Used by its own coroutine and by KeepAlive, both on the connection's thread; one of them writes
/// at a time.
class Stream {
public:
    Stream(net::Responder& responder, Executor executor, Clock& clock, Opener opener);

    /// Sends status and headers, and what opens the dialect's stream. Errors: cancelled.
    Task<Result<void>> open(const pipeline::Served& served);
    Task<Result<void>> write(const domain::Delta& delta);
    /// The proper end. After the three below nobody touches the responder any more.
    Task<Result<void>> end(const domain::Response& response);
    /// An error inside the stream, and its proper end.
    Task<Result<void>> fail_open(const Error& error);
    /// Leaves the responder to the caller, who answers otherwise.
    Task<void> retire();

    /// Sends a comment when nothing was sent for `silence`.
    Task<void> beat(std::chrono::milliseconds silence);

    bool is_open() const noexcept { return opening_.encoder != nullptr; }
    const Executor& executor() const noexcept { return executor_; }

private:
    Task<Result<void>> send_opening(const pipeline::Served* served);
    Task<Result<void>> send(std::string bytes);

    net::Responder* responder_;
    Executor executor_;
    Clock& clock_;
    Opener opener_;
    Opening opening_;
    Channel<bool> turn_{1};  // whoever holds the one value may write
    MonoTime last_write_;
    bool ended_ = false;
};

/// Beats for all open streams; runs only while there are some.
class KeepAlive : public std::enable_shared_from_this<KeepAlive> {
public:
    KeepAlive(Clock& clock, std::chrono::milliseconds silence) : clock_(clock), silence_(silence) {}
    void watch(const std::shared_ptr<Stream>& stream);

private:
    static Task<void> run(std::shared_ptr<KeepAlive> self);
    /// Beats once; false when no stream is left.
    bool beat_all();

    Clock& clock_;
    std::chrono::milliseconds silence_;
    std::mutex mutex_;
    bool running_ = false;
    std::vector<std::weak_ptr<Stream>> streams_;
};

}  // namespace molly::gateway
