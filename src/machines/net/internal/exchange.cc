#include "net/internal/exchange.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <boost/asio/dispatch.hpp>
#include <boost/asio/error.hpp>
#include <fmt/format.h>

#include "base/coroutine.h"
#include "net/internal/http_parser.h"

namespace molly::net::internal {
namespace {

namespace asio = boost::asio;
using std::chrono::steady_clock;

// A connection that was found closed says so at once. One that dies later may have been at work on
// the request, which must then not be sent a second time.
constexpr std::chrono::seconds stale_max{1};
// After a failed write the peer may have said why; we listen for so long.
constexpr std::chrono::seconds last_words_max{2};

/// Hands the request to the socket. False when it could not be written as a whole.
Task<bool> send_request(Call& call, Stream& stream) {
    Buffers buffers(call.head, call.request.body);
    ErrorOfSystem error = stream.send_now(buffers);
    if (error == asio::error::would_block)
        error = co_await stream.send(buffers, call.target.idle_timeout, call.request.deadline);
    const std::size_t body = call.request.body.size();
    call.wire.bytes_sent += body - std::min(body, buffers.size());
    if (!error) call.wire.body_accepted = true;
    co_return !error;
}

Error fault_error(const Call& call, Fault fault) {
    switch (fault) {
        case Fault::header_too_large:
            return call.failed("reply_too_large", "its reply headers are too large",
                               "le intestazioni della risposta sono troppo grandi");
        case Fault::body_too_large:
            return call.failed("reply_too_large", "its reply is larger than allowed",
                               "la risposta è più grande del consentito");
        default:
            return call.failed("reply_malformed", "its reply is no valid HTTP",
                               "la risposta non è HTTP valido");
    }
}

/// Reads one reply.
class Reader {
public:
    Reader(Call& call, Stream& stream, bool sent)
        : call_(call),
          stream_(stream),
          sent_(sent),
          parser_(call.options.header_bytes_max, call.request.reply_bytes_max,
                  call.request.method == "HEAD") {}

    Task<Result<void>> run() {
        for (;;) {
            if (!stream_.unread().empty()) {
                CO_TRY(const bool done, co_await take());
                if (done) co_return Result<void>();
            }
            if (stream_.ended()) co_return at_end();
            CO_TRY_DO(co_await more());
        }
    }
    bool heard() const noexcept { return heard_; }
    bool keep_alive() const { return parser_.keep_alive(); }

private:
    /// Passes on what has arrived; true when the reply is complete.
    Task<Result<bool>> take() {
        heard_ = true;
        const Fed fed = parser_.feed(stream_.unread());
        if (fed.fault != Fault::none) co_return fail(fault_error(call_, fed.fault));
        if (fed.head_done && !told_) {
            told_ = true;
            CO_TRY_DO(co_await call_.sink.head(parser_.status(), parser_.headers()));
        }
        for (const std::string_view piece : parser_.pieces()) {
            call_.wire.bytes_received += piece.size();
            CO_TRY_DO(co_await call_.sink.piece(piece));
        }
        stream_.consume(fed.consumed);
        co_return Result<bool>(fed.done);
    }

    Task<Result<void>> more() {
        const auto now = steady_clock::now();
        const Duration idle =
            sent_ ? Duration(call_.target.idle_timeout) : Duration(last_words_max);
        stream_.deadline(std::min(call_.request.deadline, now + idle));
        if (!stream_.read()) {
            if (call_.cancelled()) co_return fail(call_.interrupted());
            co_return fail(fault_error(call_, Fault::header_too_large));
        }
        co_await stream_.wait();
        if (call_.cancelled()) co_return fail(call_.interrupted());
        if (!stream_.timed_out()) co_return Result<void>();
        if (call_.late()) co_return fail(call_.interrupted());
        co_return fail(call_.failed("idle", "it sent nothing for too long",
                                    "non ha inviato nulla per troppo tempo"));
    }

    Result<void> at_end() {
        if (call_.cancelled()) return fail(call_.interrupted());
        const bool orderly = stream_.end_reason() == asio::error::eof;
        if (orderly && parser_.finish_at_eof()) return {};
        if (!heard_)
            return fail(call_.failed("no_reply", "it closed the connection without a reply",
                                     "ha chiuso la connessione senza rispondere"));
        return fail(call_.failed("reply_truncated", "it closed the connection within its reply",
                                 "ha chiuso la connessione a metà della risposta"));
    }

    Call& call_;
    Stream& stream_;
    bool sent_;
    ReplyParser parser_;
    bool heard_ = false;  // any byte of the reply
    bool told_ = false;   // the sink has the head
};

}  // namespace

CancelGuard::CancelGuard(CancellationPtr cancellation, asio::io_context& io,
                         const std::shared_ptr<Reach>& reach)
    : subscription_(std::move(cancellation), [&io, reach] {
          asio::dispatch(io, [reach] {
              reach->cancelled = true;
              if (reach->stream) reach->stream->close();
          });
      }) {}

Error Call::interrupted() const {
    if (cancelled()) return {ErrorCode::cancelled, "the caller has left"};
    return Error(ErrorCode::deadline_exceeded,
                 fmt::format("target {}: no complete answer before the deadline; allow more time",
                             target.id))
        .italian(fmt::format("destinazione {}: nessuna risposta completa entro il termine; "
                             "concedere più tempo",
                             target.id));
}

Error Call::failed(std::string_view reason, std::string_view what, std::string_view italian) const {
    const ErrorCode code = wire.body_accepted ? ErrorCode::upstream_failed : ErrorCode::unavailable;
    return Error(code,
                 fmt::format("target {} ({}): {}", target.id, to_string(target.endpoint), what))
        .reason(std::string(reason))
        .italian(fmt::format("destinazione {} ({}): {}", target.id, to_string(target.endpoint),
                             italian));
}

Error Call::after_loss(Error second) const {
    if (!wire.body_accepted || second.code() != ErrorCode::unavailable) return second;
    return Error(ErrorCode::upstream_failed, second.message())
        .reason(second.reason())
        .italian(second.message_italian());
}

Task<Result<void>> converse(Call& call, Link& link, bool reused) {
    Stream& stream = *link.stream;
    call.reach->stream = link.stream;
    call.replaceable = false;
    if (call.cancelled()) co_return fail(call.interrupted());
    call.wire.peer_authenticated = link.authenticated;
    const MonoTime begun = steady_clock::now();
    stream.watch(nullptr);  // a peer may answer, or leave, before it has the whole request
    stream.read();
    const bool sent = co_await send_request(call, stream);
    stream.unwatch();
    if (!sent && call.cancelled()) co_return fail(call.interrupted());
    if (!sent && call.late()) co_return fail(call.interrupted());
    Reader reader(call, stream, sent);
    const Result<void> done = co_await reader.run();
    if (!done) {
        call.replaceable = reused && !reader.heard() && stream.ended() && !call.cancelled() &&
                           steady_clock::now() - begun < stale_max;
        co_return done;
    }
    call.reusable = sent && reader.keep_alive() && !stream.ended() && stream.unread().empty();
    co_return done;
}

}  // namespace molly::net::internal
