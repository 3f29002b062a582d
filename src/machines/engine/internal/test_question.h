#pragma once
// Questions to an engine on the test model, many at once, and how alike two answers are.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include "base/coroutine.h"
#include "engine/engine.h"

namespace molly::engine::testing {

// What batches of different sizes may differ by, in natural log-probability: the base's own kernels
// round differently for one row and for eight.
inline constexpr float tolerance = 0.02F;

struct Answer {
    std::optional<Error> error;
    domain::Response response;
    std::string prefix;  ///< of the last Delta

    std::string text() const { return error ? error->message() : response.text.text(); }
};

class Collector final : public DeltaSink {
public:
    Task<Result<void>> write(const domain::Delta& delta) override {
        builder_.add(delta);
        prefix_ = delta.prefix;
        co_return Result<void>();
    }
    domain::Response take() { return builder_.take(); }
    const std::string& prefix() const noexcept { return prefix_; }

private:
    domain::ResponseBuilder builder_;
    std::string prefix_;
};

struct Question {
    domain::Request request;
    std::vector<AdapterUse> adapters;
};

inline Question ask_all(std::vector<AdapterUse> adapters, std::string text = "Parlami di Roma.") {
    Question question;
    question.request.messages.push_back(domain::text_message(domain::Role::user, std::move(text)));
    question.request.sampling.temperature = 0;
    question.request.sampling.answer_tokens_max = 24;
    question.request.sampling.logprobs = true;
    question.request.sampling.top_logprobs = 3;
    question.request.cancellation = std::make_shared<Cancellation>();
    question.adapters = std::move(adapters);
    return question;
}

inline Question ask(std::optional<AdapterUse> adapter, std::string text = "Parlami di Roma.") {
    std::vector<AdapterUse> adapters;
    if (adapter) adapters.push_back(*std::move(adapter));
    return ask_all(std::move(adapters), std::move(text));
}

inline std::vector<Answer> run(Engine& engine, const std::vector<Question>& questions) {
    boost::asio::io_context io;
    std::vector<Answer> answers(questions.size());
    for (std::size_t i = 0; i < questions.size(); ++i) {
        spawn(io.get_executor(), [&, i]() -> Task<void> {
            Collector collector;
            const Question& question = questions[i];
            Result<void> result;
            if (!question.adapters.empty()) {
                result =
                    co_await engine.generate_with(question.request, question.adapters, collector);
            } else {
                result = co_await engine.generate(question.request, collector);
            }
            if (!result) answers[i].error = result.error();
            answers[i].response = collector.take();
            answers[i].prefix = collector.prefix();
        });
    }
    io.run();
    return answers;
}

inline std::unique_ptr<Engine> open(Limits limits = {}) {
    auto engine = Engine::open(MOLLY_TEST_MODEL, std::move(limits));
    EXPECT_TRUE(engine) << engine.error().message();
    return *std::move(engine);
}

/// Whether two answers are the same but for rounding.
inline void expect_alike(const Answer& a, const Answer& b, const std::string& what,
                         float within = tolerance) {
    ASSERT_FALSE(a.error) << what << ": " << a.error->message();
    ASSERT_FALSE(b.error) << what << ": " << b.error->message();
    EXPECT_EQ(a.text(), b.text()) << what;
    ASSERT_EQ(a.response.logprobs.size(), b.response.logprobs.size()) << what;
    for (std::size_t i = 0; i < a.response.logprobs.size(); ++i) {
        const auto& left = a.response.logprobs[i];
        const auto& right = b.response.logprobs[i];
        EXPECT_EQ(left.token, right.token) << what << " token " << i;
        EXPECT_NEAR(left.logprob, right.logprob, within) << what << " token " << i;
    }
}

/// It begins within one block of memory and needs a second one before its end.
inline bool crosses(const Answer& answer) {
    const auto& usage = answer.response.usage;
    return usage.prompt_tokens < 60 && usage.prompt_tokens + usage.answer_tokens > 72;
}

inline Limits in_turns() {
    Limits limits;
    limits.adapter_route = AdapterRoute::one_at_a_time;
    return limits;
}

inline Limits with_room(std::uint64_t bytes) {
    Limits limits;
    limits.adapter_bytes_max = bytes;
    limits.inbox_jobs_max = 1000;
    return limits;
}

}  // namespace molly::engine::testing
