#include "caller.h"

namespace molly::simulation {

Task<Result<void>> CallerEnd::take(std::string_view bytes) {
    const std::string kept(bytes);
    if (!cancellation_->cancelled()) co_await clock_.sleep(delay_());
    if (cancellation_->cancelled()) co_return fail(ErrorCode::cancelled, "the caller left");
    body += kept;
    co_return Result<void>();
}

Task<Result<void>> CallerEnd::reply(net::HttpReply reply) {
    disorder = disorder || answers > 0;
    ++answers;
    status = reply.status;
    headers = reply.headers;
    if (before_last_byte) before_last_byte();
    const Result<void> taken = co_await take(reply.body);
    ended = taken.has_value();
    co_return taken;
}

Task<Result<void>> CallerEnd::begin(int code, net::Headers its_headers) {
    disorder = disorder || answers > 0;
    ++answers;
    status = code;
    headers = std::move(its_headers);
    co_return co_await take("");
}

Task<Result<void>> CallerEnd::write(std::string_view piece) {
    disorder = disorder || answers != 1 || ended;
    co_return co_await take(piece);
}

Task<Result<void>> CallerEnd::finish() {
    disorder = disorder || answers != 1 || ended;
    if (before_last_byte) before_last_byte();
    const Result<void> taken = co_await take("");
    ended = taken.has_value();
    co_return taken;
}

}  // namespace molly::simulation
