// Everything at once for a while: random arrivals, readers that leave, adapters that come and go,
// too little memory. Every answer that ends is compared with the one that it has alone.
// MOLLY_SOAK_SECONDS (4) says how long.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>
#include <random>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "engine/internal/test_adapter.h"
#include "engine/internal/test_question.h"

namespace molly::engine {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the cast of these tests
using Clock = std::chrono::steady_clock;

constexpr std::size_t adapters_count = 64;
constexpr std::size_t prompts_count = 4;  // the last one needs a second block of memory

std::chrono::seconds duration() {
    const char* wanted = std::getenv("MOLLY_SOAK_SECONDS");
    return std::chrono::seconds(wanted != nullptr ? std::atoi(wanted) : 4);
}

std::uint64_t resident_bytes() {
    std::ifstream file("/proc/self/statm");
    std::uint64_t all = 0;
    std::uint64_t resident = 0;
    file >> all >> resident;
    return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

/// A reader that leaves after some pieces; 0: never.
class Leaver final : public DeltaSink {
public:
    explicit Leaver(std::uint32_t after) : after_(after) {}
    Task<Result<void>> write(const domain::Delta& delta) override {
        builder_.add(delta);
        if (after_ > 0 && ++seen_ >= after_) co_return fail(ErrorCode::cancelled, "left");
        co_return Result<void>();
    }
    domain::Response take() { return builder_.take(); }

private:
    std::uint32_t after_;
    std::uint32_t seen_ = 0;
    domain::ResponseBuilder builder_;
};

// Of a log-probability. What was parked is read again in one piece, which rounds differently;
// another adapter, member or prompt makes more than that in the first tokens.
constexpr float rounding = 0.06F;

/// The same but for rounding: where two tokens are nearly as likely, either may come, and what
/// follows is another text. `largest`: of the differences so far.
::testing::AssertionResult alike(const domain::Response& solo, const domain::Response& got,
                                 float& largest) {
    const std::size_t both = std::min(solo.logprobs.size(), got.logprobs.size());
    for (std::size_t i = 0; i < both; ++i) {
        const auto& left = solo.logprobs[i];
        const auto& right = got.logprobs[i];
        if (left.token == right.token) {
            const float apart = std::abs(left.logprob - right.logprob);
            largest = std::max(largest, apart);
            if (apart < rounding) continue;
            return ::testing::AssertionFailure()
                   << "token " << i << " differs by " << left.logprob - right.logprob;
        }
        for (const auto& [token, logprob] : left.top)
            if (token == right.token && std::abs(logprob - left.logprob) < 2 * rounding)
                return ::testing::AssertionSuccess();
        return ::testing::AssertionFailure() << "token " << i << " is another one";
    }
    if (solo.logprobs.size() == got.logprobs.size()) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << "one is longer";
}

class Soak : public ::testing::Test {
protected:
    Soak() {
        for (std::uint32_t i = 0; i < adapters_count; ++i) {
            // Equally strong products: what a stronger one makes of rounding is no small number.
            constexpr std::pair<std::int64_t, float> ranks[] = {
                {4, 0.18F}, {8, 0.21F}, {16, 0.25F}, {32, 0.3F}};
            const auto& [rank, strength] = ranks[i % 4];
            adapters_.push_back(
                write_adapter(folder_, "s" + std::to_string(i),
                              {.seed = 500 + i, .rank = rank, .strength = strength}));
        }
        crossing_ = find_crossing();
    }

    struct Kind {
        std::vector<AdapterUse> adapters;
        std::size_t prompt = 0;
        std::string name;
    };
    Kind draw(std::mt19937& random) const {
        Kind kind;
        kind.prompt = random() % prompts_count;
        // A few are asked for often, many seldom; one in eight asks for the base, one for two.
        const auto pick = [&] { return random() % (random() % 2 == 0 ? 6 : adapters_count); };
        const auto how = random() % 8;
        std::vector<std::size_t> numbers;
        if (how > 0) numbers.push_back(pick());
        if (how == 1) numbers.push_back((numbers[0] + 1) % adapters_count);
        kind.name = std::to_string(kind.prompt);
        for (const std::size_t number : numbers) {
            kind.adapters.push_back(adapters_[number]);
            kind.adapters.back().scale = numbers.size() == 2 ? 0.5F : 1;
            kind.name += "+" + std::to_string(number);
        }
        return kind;
    }
    Question question_of(const Kind& kind) const {
        const std::string prompts[prompts_count] = {
            "Parlami di Roma.", "Uno, due e tre, e poi quattro, cinque e sei: che cosa viene dopo?",
            "Ciao!", crossing_};
        Question question = ask_all(kind.adapters, prompts[kind.prompt]);
        question.request.sampling.answer_tokens_max = 40;
        return question;
    }

    /// Two large adapters, which leave room for two blocks of keys and values.
    Kind large() const {
        Kind kind{
            .adapters = {adapters_[3], adapters_[7]}, .prompt = prompts_count - 1, .name = "large"};
        for (AdapterUse& use : kind.adapters)
            use.scale = 0.5F;
        return kind;
    }
    /// A text whose answer crosses into a second block of memory.
    std::string find_crossing() {
        std::string text = "Dimmi";
        for (int words = 0; words < 60; ++words) {
            text += " ancora";
            Question question = ask_all(large().adapters, text);
            question.request.sampling.answer_tokens_max = 40;
            if (crosses(run(*solo_engine_, {question}).front())) return text;
        }
        ADD_FAILURE() << "no answer of the test model is long enough";
        return text;
    }
    /// More memory than there is, wanted by requests that run already.
    void expect_parking(Engine& engine) {
        const Kind kind = large();
        const std::vector<Question> crowd(24, question_of(kind));
        const auto& expected = alone(kind, crowd.front());
        for (const Answer& answer : run(engine, crowd))
            EXPECT_TRUE(alike(expected, answer.response, largest_));
        EXPECT_GT(engine.memory().parked, 0U) << "there was memory enough to prove nothing";
    }

    /// Another's answer would be seen, but where both begin with tokens that are as likely.
    void expect_apart() {
        std::size_t apart = 0;
        const domain::Response* before = nullptr;
        for (std::size_t i = 0; i < adapters_count; ++i) {
            const Kind kind{
                .adapters = {adapters_[i]}, .prompt = 0, .name = fmt::format("0+{}", i)};
            const auto& answer = alone(kind, question_of(kind));
            float largest = 0;
            if (before != nullptr && !alike(*before, answer, largest)) ++apart;
            before = &answer;
        }
        EXPECT_GT(apart, adapters_count * 3 / 4);
    }

    /// Some requests at once, and all of their ends.
    void wave(Engine& engine) {
        boost::asio::io_context io;
        const std::size_t many = 1 + random_() % 32;
        std::vector<Kind> kinds;
        std::vector<Question> questions;
        for (std::size_t i = 0; i < many; ++i) {
            kinds.push_back(draw(random_));
            questions.push_back(question_of(kinds.back()));
        }
        for (std::size_t i = 0; i < many; ++i) {
            const auto leaves =
                static_cast<std::uint32_t>(random_() % 4 == 0 ? 1 + random_() % 30 : 0);
            spawn(io.get_executor(), [&, i, leaves]() -> Task<void> {
                Leaver reader(leaves);
                const auto started = Clock::now();
                const auto answered = co_await engine.generate_with(questions[i].request,
                                                                    questions[i].adapters, reader);
                const std::chrono::duration<double> took = Clock::now() - started;
                slowest_ = std::max(slowest_, took.count());
                ++asked_;
                if (answered) {
                    EXPECT_TRUE(alike(alone(kinds[i], questions[i]), reader.take(), largest_))
                        << kinds[i].name;
                } else {
                    EXPECT_EQ(answered.error().code(), ErrorCode::cancelled)
                        << answered.error().message();
                    ++left_;
                }
            });
        }
        io.run();
    }
    const domain::Response& alone(const Kind& kind, const Question& question) {
        if (!solo_.contains(kind.name))
            solo_[kind.name] = run(*solo_engine_, {question}).front().response;
        return solo_[kind.name];
    }
    /// Whoever ended last gives its adapter back just after.
    void expect_all_given_back(Engine& engine) {
        for (const AdapterUse& use : adapters_)
            engine.drop_adapter(use.hash);
        for (int i = 0; i < 400 && engine.adapters().bytes > 0; ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        EXPECT_EQ(engine.adapters().bytes, 0U) << "an adapter is held by nobody";
        EXPECT_EQ(engine.load().running + engine.load().waiting, 0U);
    }

    TestFolder folder_;
    std::vector<AdapterUse> adapters_;
    std::mt19937 random_{std::random_device{}()};
    std::unique_ptr<Engine> solo_engine_ = open();
    std::map<std::string, domain::Response> solo_;
    std::string crossing_;
    std::uint64_t asked_ = 0;
    std::uint64_t left_ = 0;
    double slowest_ = 0;
    float largest_ = 0;
};

TEST_F(Soak, NothingLeaksStarvesOrCrossesOver) {
    Limits limits;
    limits.inbox_jobs_max = 1000;
    limits.context_tokens_max = 512;
    limits.memory_bytes_max = 500U << 10U;
    const auto engine = open(limits);
    expect_apart();
    expect_parking(*engine);
    const auto ends = Clock::now() + duration();
    std::uint64_t warm_resident = 0;
    std::atomic<bool> done = false;
    std::thread taker([&] {
        std::mt19937 other(7);
        while (!done) {
            engine->drop_adapter(adapters_[other() % adapters_count].hash);
            std::this_thread::sleep_for(std::chrono::milliseconds(3));
        }
    });
    for (int turn = 0; (Clock::now() < ends || turn < 2) && !HasFailure(); ++turn) {
        wave(*engine);
        const MemoryState memory = engine->memory();
        EXPECT_LE(memory.bytes, memory.bytes_max);
        if (turn == 20) warm_resident = resident_bytes();
    }
    done = true;
    taker.join();
    expect_all_given_back(*engine);
    const std::uint64_t resident = resident_bytes();
    if (warm_resident > 0) {
        EXPECT_LT(resident, warm_resident + (24U << 20U)) << "memory grows";
    }
    const AdapterMemory state = engine->adapters();
    fmt::print(
        "soak: {} requests, {} left early, {} loads, {} evictions, parked {} times, slowest "
        "{:.2f} s, {:.1f} MiB resident ({:.1f} after 20 waves), {} different questions, largest "
        "difference {:.4f}\n",
        asked_, left_, state.loads, state.evictions, engine->memory().parked, slowest_,
        static_cast<double>(resident) / 1048576, static_cast<double>(warm_resident) / 1048576,
        solo_.size(), largest_);
    EXPECT_GT(asked_, 0U);
    EXPECT_LT(slowest_, 120) << "somebody starved";
}

}  // namespace
}  // namespace molly::engine
