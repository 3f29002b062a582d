#include "gateway/stream.h"

#include <algorithm>
#include <utility>

namespace molly::gateway {

Stream::Stream(net::Responder& responder, Executor executor, Clock& clock, Opener opener)
    : responder_(&responder),
      executor_(std::move(executor)),
      clock_(clock),
      opener_(std::move(opener)),
      last_write_(clock.now()) {
    turn_.try_send(true);
}

Task<Result<void>> Stream::send(std::string bytes) {
    if (bytes.empty()) co_return Result<void>();
    last_write_ = clock_.now();
    co_return co_await responder_->write(bytes);
}

Task<Result<void>> Stream::send_opening(const pipeline::Served* served) {
    opening_ = opener_(served);
    CO_TRY_DO(co_await responder_->begin(200, std::move(opening_.headers)));
    co_return co_await send(opening_.encoder->begin());
}

Task<Result<void>> Stream::open(const pipeline::Served& served) {
    co_await turn_.receive();
    Result<void> sent;
    // A keep-alive may have opened it already; the headers that name the target are lost then.
    if (!is_open()) sent = co_await send_opening(&served);
    turn_.try_send(true);
    co_return sent;
}

Task<Result<void>> Stream::write(const domain::Delta& delta) {
    co_await turn_.receive();
    const Result<void> sent = co_await send(opening_.encoder->delta(delta));
    turn_.try_send(true);
    co_return sent;
}

Task<void> Stream::retire() {
    co_await turn_.receive();
    ended_ = true;
}

Task<Result<void>> Stream::end(const domain::Response& response) {
    co_await retire();
    CO_TRY_DO(co_await send(opening_.encoder->end(response)));
    co_return co_await responder_->finish();
}

Task<Result<void>> Stream::fail_open(const Error& error) {
    co_await retire();
    CO_TRY_DO(co_await send(opening_.encoder->failed(error)));
    co_return co_await responder_->finish();
}

Task<void> Stream::beat(std::chrono::milliseconds silence) {
    if (!turn_.try_receive()) co_return;
    if (clock_.now() - last_write_ >= silence) {
        Result<void> sent;
        if (!is_open()) sent = co_await send_opening(nullptr);
        // An error means that the caller has gone, which its own coroutine learns as well.
        if (sent) sent = co_await send(opening_.encoder->keep_alive());
        last_write_ = clock_.now();
    }
    turn_.try_send(true);
}

void KeepAlive::watch(const std::shared_ptr<Stream>& stream) {
    bool start = false;
    {
        const std::scoped_lock lock(mutex_);
        streams_.push_back(stream);
        start = !std::exchange(running_, true);
    }
    if (start) {
        auto self = shared_from_this();
        spawn(stream->executor(), [self] { return run(self); });
    }
}

bool KeepAlive::beat_all() {
    std::vector<std::shared_ptr<Stream>> live;
    {
        const std::scoped_lock lock(mutex_);
        std::erase_if(streams_, [](const auto& stream) { return stream.expired(); });
        for (const auto& weak : streams_) {
            if (auto stream = weak.lock()) live.push_back(std::move(stream));
        }
        running_ = !live.empty();
    }
    for (auto& stream : live) {
        spawn(stream->executor(), [stream, silence = silence_] { return stream->beat(silence); });
    }
    return !live.empty();
}

Task<void> KeepAlive::run(std::shared_ptr<KeepAlive> self) {
    do {
        co_await self->clock_.sleep_until(self->clock_.now() + self->silence_ / 4);
    } while (self->beat_all());
}

}  // namespace molly::gateway
