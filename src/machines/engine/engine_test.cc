#include "engine/engine.h"

#include <chrono>
#include <future>
#include <set>
#include <thread>

#include <boost/asio/io_context.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/coroutine.h"
#include "base/json.h"
#include "base/utf8.h"

namespace molly::engine {
namespace {

using domain::FinishReason;

/// What one caller got.
struct Answer {
    std::optional<Error> error;
    domain::Response response;
    std::vector<domain::Delta> deltas;
};

class Collector final : public DeltaSink {
public:
    explicit Collector(Answer& answer) : answer_(answer) {}
    /// Called with the number of deltas so far, before each write returns.
    std::function<void(std::size_t)> on_write;
    std::size_t refuse_after = SIZE_MAX;

    Task<Result<void>> write(const domain::Delta& delta) override {
        answer_.deltas.push_back(delta);
        builder_.add(delta);
        if (on_write) on_write(answer_.deltas.size());
        if (answer_.deltas.size() > refuse_after) {
            co_return fail(ErrorCode::cancelled, "enough");
        }
        co_return Result<void>();
    }
    domain::Response take() { return builder_.take(); }

private:
    Answer& answer_;
    domain::ResponseBuilder builder_;
};

/// One engine for all tests; loading it is what they have in common.
Engine& engine() {
    static const std::unique_ptr<Engine> loaded = [] {
        auto opened = Engine::open(MOLLY_TEST_MODEL, {});
        EXPECT_TRUE(opened) << opened.error().message();
        return *std::move(opened);
    }();
    return *loaded;
}

domain::Request ask(std::string text) {
    domain::Request request;
    request.messages.push_back(domain::text_message(domain::Role::user, std::move(text)));
    request.sampling.temperature = 0;
    request.sampling.answer_tokens_max = 200;
    request.cancellation = std::make_shared<Cancellation>();
    return request;
}

/// Runs all requests at once on one thread.
std::vector<Answer> run_all(Engine& engine, const std::vector<domain::Request>& requests,
                            const std::function<void(std::size_t, Collector&)>& prepare = {}) {
    boost::asio::io_context io;
    std::vector<Answer> answers(requests.size());
    for (std::size_t i = 0; i < requests.size(); ++i) {
        spawn(io.get_executor(), [&, i]() -> Task<void> {
            Collector collector(answers[i]);
            if (prepare) prepare(i, collector);
            const auto result = co_await engine.generate(requests[i], collector);
            if (!result) answers[i].error = result.error();
            answers[i].response = collector.take();
        });
    }
    io.run();
    return answers;
}

Answer run(const domain::Request& request) {
    return run_all(engine(), {request}).front();
}

domain::Tool weather() {
    return {.name = "get_weather",
            .description = domain::Content("The weather of a city"),
            .parameters = domain::Content(
                R"({"type":"object","properties":{"city":{"type":"string","pattern":"^[A-Z]"},)"
                R"("days":{"type":"integer"}},"required":["city"]})")};
}

TEST(Engine, describes_the_model) {
    const auto& description = engine().describe();
    EXPECT_EQ(description.name, "molly-test");
    EXPECT_EQ(description.architecture, "llama");
    EXPECT_EQ(description.context_tokens_max, 8192U);
    EXPECT_TRUE(description.chat_template);
    EXPECT_TRUE(description.tools);
}

TEST(Engine, answers_in_pieces) {
    const Answer answer = run(ask("Ciao, come stai?"));
    ASSERT_FALSE(answer.error) << answer.error->message();
    EXPECT_GT(answer.deltas.size(), 10U);
    EXPECT_GT(answer.response.text.text().size(), 40U);
    EXPECT_EQ(answer.response.finish, FinishReason::stop);
    EXPECT_GT(answer.response.usage.prompt_tokens, 5U);
    EXPECT_GT(answer.response.usage.answer_tokens, 10U);
    EXPECT_EQ(answer.response.usage.source, domain::Usage::Source::engine);
    for (const auto& delta : answer.deltas)
        EXPECT_TRUE(utf8_valid(delta.text));
}

TEST(Engine, stops_at_the_limit) {
    auto request = ask("Ciao");
    request.sampling.answer_tokens_max = 5;
    const Answer answer = run(request);
    EXPECT_EQ(answer.response.finish, FinishReason::length);
    EXPECT_EQ(answer.response.usage.answer_tokens, 5U);
}

TEST(Engine, stops_at_a_string) {
    const std::string whole = run(ask("Ciao")).response.text.text();
    auto request = ask("Ciao");
    const std::string stop = whole.substr(whole.size() / 2, 6);
    request.sampling.stop = {stop};
    const Answer answer = run(request);
    EXPECT_EQ(answer.response.text.text(), whole.substr(0, whole.find(stop)));
    EXPECT_EQ(answer.response.finish, FinishReason::stop);
    EXPECT_EQ(answer.response.stop_sequence, stop);
}

// Kernels differ with the shape of a batch, so logits move in the last bits; the margins of this
// model are wide enough that greedy answers stay the same.
TEST(Engine, eight_at_once_equal_eight_alone) {
    std::vector<domain::Request> requests;
    std::vector<std::string> alone;
    for (const char* text : {"uno", "due gatti", "the sea", "Roma?", "la casa", "wind", "a b c",
                             "Dimmi qualcosa di bello sul mare e sulla montagna"}) {
        requests.push_back(ask(text));
        alone.push_back(run(requests.back()).response.text.text());
    }
    const auto together = run_all(engine(), requests);
    for (std::size_t i = 0; i < requests.size(); ++i)
        EXPECT_EQ(together[i].response.text.text(), alone[i]) << i;
    EXPECT_GT(std::set<std::string>(alone.begin(), alone.end()).size(), 4U);
}

TEST(Engine, runs_more_requests_than_it_has_sequences) {
    const std::vector<domain::Request> requests(20, ask("tanti"));
    for (const auto& answer : run_all(engine(), requests))
        EXPECT_FALSE(answer.error);
}

TEST(Engine, a_seed_repeats_an_answer) {
    auto request = ask("Ciao");
    request.sampling.temperature = 1.5F;
    request.sampling.seed = 42;
    const std::string first = run(request).response.text.text();
    EXPECT_EQ(run(request).response.text.text(), first);
    request.sampling.seed = 43;
    EXPECT_NE(run(request).response.text.text(), first);
}

TEST(Engine, writes_a_json_object) {
    auto request = ask("Give me an object");
    request.format.kind = domain::OutputFormat::Kind::json_object;
    const Answer answer = run(request);
    ASSERT_FALSE(answer.error) << answer.error->message();
    const auto value = parse_json(answer.response.text.text());
    ASSERT_TRUE(value) << answer.response.text.text();
    EXPECT_TRUE(value->is_object());
}

Answer shaped(std::string_view schema) {
    auto request = ask("Fill this in");
    request.format.kind = domain::OutputFormat::Kind::json_schema;
    request.format.schema = domain::Content(std::string(schema));
    request.format.strict = true;
    request.sampling.answer_tokens_max = 400;
    return run(request);
}

TEST(Engine, keeps_to_a_schema) {
    const Answer answer = shaped(R"({"type":"object","properties":{
        "name":{"type":"string","maxLength":12},"age":{"type":"integer","minimum":18,"maximum":99},
        "code":{"type":"string","pattern":"^hello\\\\!$"},"colour":{"enum":["red","green"]},
        "tags":{"type":"array","items":{"type":"string","maxLength":8},"minItems":2,"maxItems":3}},
        "required":["name","age","code","colour","tags"],"additionalProperties":false})");
    ASSERT_FALSE(answer.error) << answer.error->message();
    EXPECT_EQ(answer.response.finish, FinishReason::stop);
    const auto parsed = parse_json(answer.response.text.text());
    ASSERT_TRUE(parsed) << answer.response.text.text();
    const auto& object = parsed->as_object();
    EXPECT_EQ(object.size(), 5U);
    EXPECT_LE(object.at("name").as_string().size(), 48U);
    EXPECT_GE(object.at("age").as_int64(), 18);
    EXPECT_LE(object.at("age").as_int64(), 99);
    EXPECT_EQ(object.at("code").as_string(), "hello\\!");
    EXPECT_TRUE(object.at("colour") == "red" || object.at("colour") == "green");
    EXPECT_GE(object.at("tags").as_array().size(), 2U);
    EXPECT_LE(object.at("tags").as_array().size(), 3U);
}

TEST(Engine, refuses_grammars_and_schemas_that_do_not_compile) {
    for (const char* schema : {R"x({"type":"string","pattern":"^(?=a)"})x", R"({"$ref":"#"})", "{",
                               R"({"type":"object","properties":{"a":{"not":{}}}})"}) {
        const Answer answer = shaped(schema);
        ASSERT_TRUE(answer.error) << schema;
        EXPECT_EQ(answer.error->code(), ErrorCode::invalid_request);
        EXPECT_EQ(answer.error->param(), "response_format");
    }
    auto request = ask("Ciao");
    request.format.kind = domain::OutputFormat::Kind::grammar;
    for (const std::string& grammar :
         {std::string("root ::= oops"), std::string("root ::= \"a\"{99999}"),
          "root ::= " + std::string(200'000, '('), std::string("root ::= root \"a\" | \"b\"")}) {
        request.format.schema = domain::Content(grammar);
        const Answer answer = run(request);
        ASSERT_TRUE(answer.error) << grammar.substr(0, 40);
        EXPECT_EQ(answer.error->code(), ErrorCode::invalid_request);
        EXPECT_EQ(answer.error->param(), "grammar");
    }
}

TEST(Engine, survives_a_grammar_that_explodes_while_it_runs) {
    auto request = ask("Ciao");
    request.format.kind = domain::OutputFormat::Kind::grammar;
    request.format.schema =
        domain::Content("root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"d\" \"e\"{200}");
    const auto answers = run_all(engine(), {request, ask("Ciao")});
    EXPECT_TRUE(!answers[0].error || answers[0].error->code() == ErrorCode::exhausted);
    EXPECT_FALSE(answers[1].error);
}

TEST(Engine, a_shape_and_tools_together_give_one_or_the_other) {
    auto request = ask("What is the weather in Rome?");
    request.tools = {weather()};
    request.format.kind = domain::OutputFormat::Kind::json_object;
    const Answer answer = run(request);
    ASSERT_FALSE(answer.error) << answer.error->message();
    if (answer.response.tool_calls.empty()) {
        EXPECT_TRUE(parse_json(answer.response.text.text())) << answer.response.text.text();
    } else {
        EXPECT_EQ(answer.response.finish, FinishReason::tool_calls);
    }
}

void expect_weather_call(const Answer& answer) {
    ASSERT_FALSE(answer.error) << answer.error->message();
    EXPECT_EQ(answer.response.finish, FinishReason::tool_calls);
    ASSERT_EQ(answer.response.tool_calls.size(), 1U);
    const auto& call = answer.response.tool_calls.front();
    EXPECT_EQ(call.name, "get_weather");
    EXPECT_TRUE(call.id.starts_with("call_"));
    const auto arguments = parse_json(call.arguments.text());
    ASSERT_TRUE(arguments) << call.arguments.text();
    EXPECT_TRUE(arguments->as_object().at("city").is_string());
    EXPECT_EQ(answer.response.text.text(), "");
}

TEST(Engine, calls_a_tool_of_its_own_accord) {
    auto request = ask("What is the weather in Rome?");
    request.tools = {weather()};
    expect_weather_call(run(request));
}

TEST(Engine, calls_the_tool_that_is_named) {
    auto request = ask("Ciao");
    domain::Tool other = weather();
    other.name = "other";
    request.tools = {other, weather()};
    request.tool_choice = {.kind = domain::ToolChoice::Kind::named, .name = "get_weather"};
    expect_weather_call(run(request));
    request.tool_choice.name = "absent";
    EXPECT_EQ(run(request).error->code(), ErrorCode::invalid_request);
}

TEST(Engine, answers_after_a_tool_has) {
    auto request = ask("What is the weather in Rome?");
    request.tools = {weather()};
    const Answer called = run(request);
    ASSERT_EQ(called.response.tool_calls.size(), 1U);
    const auto& call = called.response.tool_calls.front();
    domain::Message asked;
    asked.role = domain::Role::assistant;
    asked.tool_calls = {call};
    auto result = domain::text_message(domain::Role::tool, "sunny, 20 degrees");
    result.tool_call_id = call.id;
    request.messages.push_back(asked);
    request.messages.push_back(result);
    const Answer answer = run(request);
    EXPECT_EQ(answer.response.finish, FinishReason::stop);
    EXPECT_GT(answer.response.text.text().size(), 20U);
}

TEST(Engine, refuses_a_prompt_over_the_context) {
    std::string text;
    for (int i = 0; i < 20000; ++i)
        text += "mare ";
    const Answer answer = run(ask(text));
    ASSERT_TRUE(answer.error);
    EXPECT_EQ(answer.error->code(), ErrorCode::invalid_request);
    EXPECT_EQ(answer.error->reason(), "context_length_exceeded");
    EXPECT_THAT(answer.error->message(), testing::HasSubstr("8192"));
    EXPECT_THAT(answer.error->message(), testing::HasSubstr("20"));
}

/// A request that would go on until its tokens are used up.
domain::Request endless() {
    auto request = ask("Ciao");
    request.format.kind = domain::OutputFormat::Kind::grammar;
    request.format.schema = domain::Content("root ::= [a-z ] root");
    request.sampling.answer_tokens_max = 4000;
    return request;
}

/// The reader hears of an end just before the engine thread is free again.
void expect_idle() {
    for (int i = 0; i < 200 && engine().load().running > 0; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_EQ(engine().load().running, 0U);
}

TEST(Engine, cancels_in_the_middle) {
    const std::vector<domain::Request> requests = {endless(), ask("Ciao")};
    const auto answers = run_all(engine(), requests, [&](std::size_t i, Collector& collector) {
        if (i != 0) return;
        collector.on_write = [&](std::size_t deltas) {
            if (deltas == 10) requests[0].cancellation->cancel();
        };
    });
    ASSERT_TRUE(answers[0].error);
    EXPECT_EQ(answers[0].error->code(), ErrorCode::cancelled);
    EXPECT_LT(answers[0].deltas.size(), 100U);
    EXPECT_FALSE(answers[1].error);
    expect_idle();
}

TEST(Engine, a_slow_reader_holds_up_nobody_else) {
    boost::asio::io_context io;
    std::vector<std::string> order;
    Answer quick;
    const auto short_one = ask("Ciao");
    class Sleeper final : public DeltaSink {
    public:
        explicit Sleeper(bool& go) : go_(go) {}
        std::size_t pieces = 0;
        Task<Result<void>> write(const domain::Delta&) override {
            ++pieces;
            while (!go_) {
                co_await system_clock().sleep_until(system_clock().now() +
                                                    std::chrono::milliseconds(5));
            }
            co_return Result<void>();
        }

    private:
        bool& go_;
    };
    bool go = false;
    Sleeper sleeper(go);
    auto limited = endless();
    limited.sampling.answer_tokens_max = 300;
    spawn(io.get_executor(), [&]() -> Task<void> {
        const auto result = co_await engine().generate(limited, sleeper);
        EXPECT_TRUE(result);
        order.emplace_back("slow");
    });
    spawn(io.get_executor(), [&]() -> Task<void> {
        Collector collector(quick);
        const auto result = co_await engine().generate(short_one, collector);
        EXPECT_TRUE(result);
        order.emplace_back("quick");
        go = true;
    });
    io.run();
    EXPECT_EQ(order, (std::vector<std::string>{"quick", "slow"}));
    EXPECT_GT(sleeper.pieces, 250U);
}

TEST(Engine, notices_that_the_reader_has_gone) {
    const auto answers = run_all(engine(), {endless()}, [](std::size_t, Collector& collector) {
        collector.refuse_after = 3;
    });
    EXPECT_EQ(answers[0].error->code(), ErrorCode::cancelled);
    expect_idle();
}

TEST(Engine, keeps_to_the_deadline) {
    auto request = endless();
    request.deadline = system_clock().now() + std::chrono::milliseconds(100);
    const Answer answer = run(request);
    ASSERT_TRUE(answer.error);
    EXPECT_EQ(answer.error->code(), ErrorCode::deadline_exceeded);
}

TEST(Engine, lists_log_probabilities) {
    auto request = ask("Ciao");
    request.sampling.logprobs = true;
    request.sampling.top_logprobs = 3;
    const Answer answer = run(request);
    const auto& logprobs = answer.response.logprobs;
    ASSERT_EQ(logprobs.size() + 1, answer.response.usage.answer_tokens);  // the end has none
    std::string joined;
    for (const auto& token : logprobs) {
        joined += token.token;
        ASSERT_EQ(token.top.size(), 3U);
        EXPECT_EQ(token.top.front().first, token.token);  // greedy
        EXPECT_LE(token.logprob, 0);
        EXPECT_GE(token.top[0].second, token.top[1].second);
    }
    EXPECT_EQ(joined, answer.response.text.text());
}

TEST(Engine, completes_a_raw_prompt) {
    domain::Request request = ask("");
    request.operation = domain::Operation::complete;
    request.messages.clear();
    request.prompt = domain::Content("Il gatto");
    request.echo = true;
    const Answer answer = run(request);
    ASSERT_FALSE(answer.error) << answer.error->message();
    // The edge repeats the prompt: it knows it whatever target answers.
    EXPECT_FALSE(answer.response.text.empty());
    EXPECT_FALSE(answer.response.text.text().starts_with("Il gatto"));
}

TEST(Engine, refuses_images_and_odd_numbers) {
    auto request = ask("Ciao");
    domain::Part image;
    image.kind = domain::Part::Kind::image;
    request.messages[0].parts.push_back(image);
    EXPECT_EQ(run(request).error->code(), ErrorCode::unsupported);
    request = ask("Ciao");
    request.sampling.top_p = 2;
    EXPECT_EQ(run(request).error->param(), "top_p");
}

Result<Embeddings> embed(std::vector<domain::Content> inputs) {
    domain::Request request;
    request.operation = domain::Operation::embed;
    request.inputs = std::move(inputs);
    boost::asio::io_context io;
    Result<Embeddings> result = fail(ErrorCode::internal, "not run");
    spawn(io.get_executor(), [&]() -> Task<void> { result = co_await engine().embed(request); });
    io.run();
    return result;
}

TEST(Engine, embeds_texts) {
    const auto result = embed(
        {domain::Content("il mare"), domain::Content("il mare"), domain::Content("the train")});
    ASSERT_TRUE(result) << result.error().message();
    ASSERT_EQ(result->vectors.size(), 3U);
    EXPECT_GT(result->usage.prompt_tokens, 5U);
    EXPECT_EQ(result->vectors[0], result->vectors[1]);
    EXPECT_NE(result->vectors[0], result->vectors[2]);
    double length = 0;
    for (const float value : result->vectors[2])
        length += static_cast<double>(value) * value;
    EXPECT_NEAR(length, 1, 1e-5);
    EXPECT_EQ(embed({domain::Content("")}).error().code(), ErrorCode::invalid_request);
}

TEST(Engine, says_why_a_model_does_not_load) {
    EXPECT_EQ(Engine::open("/nowhere.gguf", {}).error().code(), ErrorCode::not_found);
    EXPECT_EQ(Engine::open("/proc/self/exe", {}).error().code(), ErrorCode::corrupt);
}

}  // namespace
}  // namespace molly::engine
