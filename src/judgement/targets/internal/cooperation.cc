#include "targets/internal/cooperation.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "base/coroutine.h"
#include "base/gather.h"
#include "base/log.h"

namespace molly::targets::internal {

using dialects::DraftCall;
using dialects::DraftSession;
using dialects::DraftVerdict;
using engine::Drafting;

namespace {

constexpr int ok = 200;
constexpr int busy = 429;
constexpr int resting = 503;

double milliseconds_since(MonoTime start) {
    return std::chrono::duration<double, std::milli>(system_clock().now() - start).count();
}

void add_bytes(const Report& more, Report& report) {
    report.bytes_sent += more.bytes_sent;
    report.bytes_received += more.bytes_received;
}

/// Whether the request itself would come to no other end there.
bool is_gone(const Error& error) noexcept {
    const ErrorCode code = error.code();
    return code == ErrorCode::unavailable || code == ErrorCode::cancelled ||
           code == ErrorCode::deadline_exceeded || code == ErrorCode::denied;
}

/// Keeps a short reply.
class BodyReader final : public net::ReplySink {
public:
    Task<Result<void>> head(int status, const net::Headers& /*headers*/) override {
        status_ = status;
        co_return Result<void>();
    }
    Task<Result<void>> piece(std::string_view bytes) override {
        body_ += bytes;
        co_return Result<void>();
    }
    int status() const noexcept { return status_; }
    std::string& body() noexcept { return body_; }

private:
    int status_ = 0;
    std::string body_;
};

/// Notes when the first Delta came.
class TimedSink final : public DeltaSink {
public:
    explicit TimedSink(DeltaSink& next) : next_(next) {}
    Task<Result<void>> write(const domain::Delta& delta) override {
        if (!first_) first_ = system_clock().now();
        return next_.write(delta);
    }
    /// Of each token behind the first; 0: that says nothing.
    double token_ms(const domain::Usage& usage) const {
        constexpr std::uint32_t tokens_least = 8;
        if (!first_ || usage.answer_tokens < tokens_least) return 0;
        return milliseconds_since(*first_) / (usage.answer_tokens - 1);
    }

private:
    DeltaSink& next_;
    std::optional<MonoTime> first_;
};

}  // namespace

/// One answer while it is made there and drafted here.
class DraftedExchange {
public:
    DraftedExchange(Cooperation& cooperation, const policy::Dispatch& dispatch, DeltaSink& sink,
                    Report& report, std::unique_ptr<Drafting> drafting, DraftSession session)
        : cooperation_(cooperation),
          dispatch_(dispatch),
          sink_(sink),
          report_(report),
          drafting_(std::move(drafting)),
          session_(std::move(session)),
          over_(std::make_shared<Cancellation>()) {}

    Task<Result<domain::Response>> run() {
        const CancelSubscription leaving(dispatch_.request().cancellation, [this] { stop(); });
        std::vector<std::function<Task<void>()>> both;
        both.emplace_back([this] { return listen(); });
        both.emplace_back([this] { return draft(); });
        co_await gather(std::move(both));
        add_bytes(drafts_, report_);
        if (answered_) {
            const double token_ms = sink_.token_ms(answered_->usage);
            if (token_ms > 0 && together_) note_pace(token_ms);
        }
        co_return std::move(answered_);
    }

private:
    void note_pace(double token_ms) {
        cooperation_.record(
            [&](DraftRecord& record) { record.answered(true, token_ms, system_clock().now()); });
    }

    void stop() {
        over_->cancel();
        drafting_->give_up();
    }

    Task<void> listen() {
        net::Headers more;
        more.emplace_back(dialects::drafts_header, session_.id);
        answered_ = co_await cooperation_.upstream_.ask(dispatch_.request(), dispatch_.permit(),
                                                        sink_, report_, std::move(more));
        stop();
    }

    Task<void> draft() {
        while (!over_->cancelled()) {
            const std::uint32_t most = next_length();
            if (most == 0) break;
            const auto went = co_await send_block(most);
            if (!went) {
                log_event(LogLevel::debug, "drafts_ended",
                          {{"target", cooperation_.upstream_.spec().id},
                           {"code", to_string(went.error().code())}});
                break;
            }
            if (*went) co_return drafting_->give_up();
        }
        together_ = false;
        drafting_->give_up();  // its place is free for others
        if (!over_->cancelled()) co_await go_on_alone();
    }

    std::uint32_t next_length() {
        const BlockChoice choice = cooperation_.next_block(session_.draft_tokens_max);
        if (choice.tokens == 0) {
            cooperation_.record([](DraftRecord& record) { record.rest(system_clock().now()); });
        }
        return choice.tokens;
    }

    /// Drafts a block and has it checked. True: the answer is complete.
    Task<Result<bool>> send_block(std::uint32_t most) {
        DraftRecord::Block block;
        block.first = came_ == 0;
        const MonoTime started = system_clock().now();
        CO_TRY(auto tokens, co_await drafting_->propose(std::move(news_), most));
        block.draft_ms = milliseconds_since(started);
        block.drafted = static_cast<std::uint32_t>(tokens.size());
        DraftCall call;
        call.session = session_.id;
        call.from = came_;
        call.tokens = std::move(tokens);
        const MonoTime sent = system_clock().now();
        CO_TRY(DraftVerdict verdict, co_await verdict_on(call));
        block.call_ms = milliseconds_since(sent);
        block.accepted = std::min(verdict.accepted, block.drafted);
        block.check_ms = verdict.check_ms;
        block.step_ms = verdict.step_ms;
        cooperation_.record([&](DraftRecord& record) { record.saw(block); });
        report_.drafted += block.drafted;
        report_.accepted += block.accepted;
        came_ += static_cast<std::uint32_t>(verdict.tokens.size());
        news_ = std::move(verdict.tokens);
        co_return verdict.ended;
    }

    Task<Result<DraftVerdict>> verdict_on(const DraftCall& call) {
        CO_TRY(const Cooperation::Said said,
               co_await cooperation_.call(dispatch_.request(), dispatch_.permit(), call, over_,
                                          drafts_));
        if (said.status == ok) co_return dialects::decode_draft_verdict(said.body);
        co_return fail(ErrorCode::upstream_failed, "the other node checks no more drafts");
    }

    Task<void> go_on_alone() {
        DraftCall call;
        call.session = session_.id;
        call.from = came_;
        call.alone = true;
        // Should it not arrive, the other node's patience ends by itself.
        [[maybe_unused]] const auto told = co_await verdict_on(call);
    }

    Cooperation& cooperation_;
    const policy::Dispatch& dispatch_;
    TimedSink sink_;
    Report& report_;
    Report drafts_;  // of the calls beside the request
    std::unique_ptr<Drafting> drafting_;
    const DraftSession session_;
    const CancellationPtr over_;
    std::uint32_t came_ = 0;          // tokens of the answer
    std::vector<std::int32_t> news_;  // of them, those that the drafter does not know yet
    bool together_ = true;            // to the end
    Result<domain::Response> answered_ = fail(ErrorCode::internal, "the request was not sent");
};

Cooperation::Cooperation(Upstream& upstream, Drafter drafter)
    : upstream_(upstream), drafter_(std::move(drafter)), root_(upstream.spec()) {
    constexpr std::string_view version = "/v1";
    std::string& path = root_.endpoint.path;
    if (path.ends_with(version)) path.resize(path.size() - version.size());
}

/// Whether this device may draft the answer, and could.
bool Cooperation::suits(const policy::Dispatch& dispatch) const {
    const domain::Request& request = dispatch.request();
    if (request.operation == domain::Operation::embed || !request.tools.empty()) return false;
    if (!dispatch.adapter().empty() || !dispatch.permit().check(*drafter_.spec)) return false;
    const bool text_alone = std::ranges::all_of(request.messages, [](const auto& message) {
        return std::ranges::all_of(message.parts, [](const domain::Part& part) {
            return part.kind == domain::Part::Kind::text;
        });
    });
    const std::scoped_lock lock(mutex_);
    return text_alone && (always() || record_.pays(system_clock().now()));
}

BlockChoice Cooperation::next_block(std::uint32_t most) const {
    constexpr std::uint32_t always_tokens = 8;
    most = std::min(most, engine::draft_block_tokens_max);
    if (always()) return {.tokens = std::min(most, always_tokens), .gain = 1};
    const std::scoped_lock lock(mutex_);
    return choose_block(record_.costs(), most);
}

Task<Result<Cooperation::Said>> Cooperation::call(const domain::Request& request,
                                                  const policy::Permit& permit,
                                                  const DraftCall& what,
                                                  CancellationPtr cancellation,
                                                  Report& report) const {
    net::OutboundRequest outbound;
    outbound.path = "/molly/v1/verify";
    outbound.headers.emplace_back("content-type", "application/json");
    outbound.body = dialects::encode_draft_call(what);
    outbound.deadline = request.deadline;
    outbound.cancellation = std::move(cancellation);
    outbound.reply_bytes_max = 1U << 20U;
    upstream_.add_key(outbound.headers);
    BodyReader reader;
    net::Wire wire;
    const Result<void> exchanged =
        co_await upstream_.connector().exchange(permit, root_, std::move(outbound), reader, wire);
    report.bytes_sent += wire.bytes_sent;
    report.bytes_received += wire.bytes_received;
    if (!exchanged) co_return fail(exchanged.error());
    Said said;
    said.status = reader.status();
    said.body = std::move(reader.body());
    co_return said;
}

/// Nothing of the request goes out before the other node has said that it speaks this. Nothing: it
/// answers alone. Errors: the request itself would come to no other end.
Task<Result<std::optional<DraftSession>>> Cooperation::open(const policy::Dispatch& dispatch,
                                                            Report& report) {
    DraftCall call;
    call.vocabulary = drafter_.engine->describe().vocabulary;
    call.waits = always();
    const auto said = co_await this->call(dispatch.request(), dispatch.permit(), call,
                                          dispatch.request().cancellation, report);
    if (!said && is_gone(said.error())) co_return fail(said.error());
    std::optional<DraftSession> session;
    if (said && said->status == ok) {
        if (auto read = dialects::decode_draft_session(said->body)) session = *std::move(read);
    }
    const int status = said ? said->status : 0;
    // Whoever has no room now may have some the next time.
    if (!session && status != busy && status != resting) {
        record([](DraftRecord& record) { record.rest(system_clock().now()); });
        log_event(LogLevel::info, "drafts_refused", {{"target", root_.id}, {"status", status}});
    }
    co_return session;
}

Task<Result<domain::Response>> Cooperation::answer_alone(const policy::Dispatch& dispatch,
                                                         DeltaSink& sink, Report& report) {
    TimedSink timed(sink);
    CO_TRY(domain::Response response,
           co_await upstream_.ask(dispatch.request(), dispatch.permit(), timed, report));
    if (const double token_ms = timed.token_ms(response.usage); token_ms > 0) {
        record(
            [&](DraftRecord& record) { record.answered(false, token_ms, system_clock().now()); });
    }
    co_return response;
}

Task<Result<domain::Response>> Cooperation::answer(const policy::Dispatch& dispatch,
                                                   DeltaSink& sink, Report& report) {
    if (!suits(dispatch)) co_return co_await answer_alone(dispatch, sink, report);
    auto drafting = drafter_.engine->draft(dispatch.request());
    if (!drafting) co_return co_await answer_alone(dispatch, sink, report);
    Report opening;
    auto session = co_await open(dispatch, opening);
    if (!session) co_return fail(session.error());
    if (!*session) {
        drafting->reset();
        auto answered = co_await answer_alone(dispatch, sink, report);
        add_bytes(opening, report);
        co_return answered;
    }
    DraftedExchange exchange(*this, dispatch, sink, report, *std::move(drafting),
                             **std::move(session));
    auto answered = co_await exchange.run();
    add_bytes(opening, report);
    co_return answered;
}

}  // namespace molly::targets::internal
