#include "evaluate/internal/asker.h"

#include <algorithm>
#include <atomic>
#include <memory>

#include <boost/asio/io_context.hpp>

#include "base/coroutine.h"

namespace molly::evaluate {
namespace {

constexpr std::size_t at_once = 16;  // two for every sequence of the engine
constexpr std::uint32_t answer_tokens_max = 160;

class Collector final : public engine::DeltaSink {
public:
    Task<Result<void>> write(const domain::Delta& delta) override {
        builder_.add(delta);
        co_return Result<void>();
    }
    domain::Response take() { return builder_.take(); }

private:
    domain::ResponseBuilder builder_;
};

domain::Request request_of(const Question& question) {
    domain::Request request;
    request.messages = question.messages;
    request.format.kind = domain::OutputFormat::Kind::json_schema;
    request.format.name = "answer";
    request.format.schema = domain::Content(*question.schema);
    request.format.strict = true;
    request.sampling.temperature = 0;
    request.sampling.answer_tokens_max = answer_tokens_max;
    request.cancellation = std::make_shared<Cancellation>();
    return request;
}

/// What all workers share; they run on one thread.
struct Round {
    engine::Engine& engine;
    const std::vector<Question>& questions;
    const std::function<void(std::size_t)>& progress;
    std::vector<Reply> replies;
    std::size_t next = 0;
    std::size_t done = 0;
    std::optional<Error> error;
};

Task<Result<void>> ask(Round& round, std::size_t number) {
    const Question& question = round.questions[number];
    const domain::Request request = request_of(question);
    Collector collector;
    Result<void> asked;
    if (question.adapter) {
        std::vector<engine::AdapterUse> adapters(1, *question.adapter);
        asked = co_await round.engine.generate_with(request, std::move(adapters), collector);
    } else {
        asked = co_await round.engine.generate(request, collector);
    }
    Reply& reply = round.replies[number];
    if (!asked && asked.error().reason() == "context_length_exceeded") {
        reply.too_long = true;
        co_return Result<void>();
    }
    if (!asked) co_return fail(asked.error());
    const domain::Response response = collector.take();
    reply.text = response.text.text();
    reply.prompt_tokens = response.usage.prompt_tokens;
    reply.answer_tokens = response.usage.answer_tokens;
    co_return Result<void>();
}

Task<void> work(Round& round) {
    while (!round.error && round.next < round.questions.size()) {
        const std::size_t number = round.next++;
        const Result<void> asked = co_await ask(round, number);
        if (!asked) round.error = asked.error();
        ++round.done;
        if (round.progress) round.progress(round.done);
    }
}

}  // namespace

Result<std::vector<Reply>> ask_all(engine::Engine& engine, const std::vector<Question>& questions,
                                   const std::function<void(std::size_t)>& progress) {
    Round round{.engine = engine,
                .questions = questions,
                .progress = progress,
                .replies = std::vector<Reply>(questions.size()),
                .error = std::nullopt};
    boost::asio::io_context io;
    for (std::size_t i = 0; i < std::min(at_once, questions.size()); ++i) {
        spawn(io.get_executor(), [&round]() -> Task<void> { co_await work(round); });
    }
    io.run();
    if (round.error) return fail(*round.error);
    return std::move(round.replies);
}

}  // namespace molly::evaluate
