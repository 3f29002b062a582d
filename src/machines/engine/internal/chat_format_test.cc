#include "engine/internal/chat_format.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/internal/grammar.h"
#include "engine/internal/grammar_matcher.h"
#include "engine/internal/model.h"

namespace molly::engine {
namespace {

const Model& model() {
    static const std::unique_ptr<Model> loaded = [] {
        EXPECT_TRUE(load_backends(MOLLY_LLAMA_LIBRARIES));
        return *Model::load(MOLLY_TEST_MODEL);
    }();
    return *loaded;
}

domain::Request ask(std::string text) {
    domain::Request request;
    request.messages.push_back(domain::text_message(domain::Role::user, std::move(text)));
    return request;
}

domain::Tool weather() {
    return {.name = "get_weather",
            .description = domain::Content("The weather of a city"),
            .parameters = domain::Content(
                R"({"type":"object","properties":{"city":{"type":"string"},"days":{"type":)"
                R"("integer","minimum":1},"units":{"enum":["C","F"]}},"required":["city"]})")};
}

/// Feeds the text piece by piece and joins what came out.
domain::Response read(AnswerReader& reader, const std::string& text, std::size_t step) {
    domain::ResponseBuilder builder;
    for (std::size_t length = step; length < text.size(); length += step)
        builder.add(reader.read(text.substr(0, length), false));
    builder.add(reader.read(text, true));
    return builder.take();
}

TEST(ChatFormat, writes_the_conversation_as_the_template_says) {
    const auto format = ChatFormat::make(model().handle());
    auto request = ask("Ciao");
    request.messages.insert(request.messages.begin(),
                            domain::text_message(domain::Role::system, "Be brief"));
    const auto prompt = (*format)->render(request);
    ASSERT_TRUE(prompt);
    EXPECT_EQ(prompt->text,
              "<|im_start|>system\nBe brief<|im_end|>\n<|im_start|>user\nCiao<|im_end|>\n"
              "<|im_start|>assistant\n");
    EXPECT_EQ(prompt->reader, nullptr);
}

TEST(ChatFormat, continues_a_last_assistant_message) {
    const auto format = ChatFormat::make(model().handle());
    auto request = ask("Ciao");
    request.messages.push_back(domain::text_message(domain::Role::assistant, "Ecco:"));
    const auto prompt = (*format)->render(request);
    ASSERT_TRUE(prompt);
    EXPECT_TRUE(prompt->text.ends_with("<|im_start|>assistant\nEcco:")) << prompt->text;
}

TEST(ChatFormat, streams_tool_calls_in_pieces_that_join) {
    const auto format = ChatFormat::make(model().handle());
    auto request = ask("Ciao");
    request.tools = {weather()};
    const std::string text =
        "Ecco. <tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Ro\\\"ma\", "
        "\"days\": 3}}\n</tool_call>";
    for (const std::size_t step : {1U, 2U, 7U, 1000U}) {
        const auto prompt = (*format)->render(request);
        ASSERT_TRUE(prompt && prompt->reader);
        const auto response = read(*prompt->reader, text, step);
        ASSERT_EQ(response.tool_calls.size(), 1U) << step;
        EXPECT_EQ(response.tool_calls[0].name, "get_weather");
        EXPECT_EQ(response.tool_calls[0].arguments.text(), R"({"city": "Ro\"ma", "days": 3})");
        EXPECT_THAT(response.text.text(), testing::StartsWith("Ecco."));
        EXPECT_THAT(response.text.text(), testing::Not(testing::HasSubstr("tool_call")));
    }
}

TEST(ChatFormat, gives_back_what_breaks_the_format) {
    const auto format = ChatFormat::make(model().handle());
    auto request = ask("Ciao");
    request.tools = {weather()};
    const auto prompt = (*format)->render(request);
    const std::string nested = "<tool_call>" + std::string(100'000, '[');
    const auto response = read(*prompt->reader, nested, 5'000);
    EXPECT_TRUE(response.tool_calls.empty());
}

std::string read_template(const std::string& name) {
    std::ifstream file(std::filesystem::path(MOLLY_LLAMA_SOURCE) / "models/templates" / name);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// The grammar of the prompt must be one that ours can follow, beginning with what the template
/// itself has written.
void expect_followed(const Prompt& prompt, const std::string& name) {
    const auto any_token = [](std::string_view) { return std::optional<std::uint32_t>(1); };
    const auto grammar = Grammar::parse(prompt.tool_grammar, any_token);
    ASSERT_TRUE(grammar) << name << grammar.error().message() << "\n" << prompt.tool_grammar;
    if (!prompt.grammar_words.empty()) return;
    GrammarMatcher matcher(std::make_shared<const Grammar>(*grammar));
    const auto state = matcher.after(matcher.current(), prompt.opening);
    EXPECT_TRUE(state && *state != GrammarMatcher::dead) << name << "\n" << prompt.tool_grammar;
}

TEST(ChatFormat, follows_the_grammars_of_real_templates) {
    for (const std::string name :
         {"Qwen-Qwen3-0.6B", "NousResearch-Hermes-3-Llama-3.1-8B-tool_use", "ByteDance-Seed-OSS",
          "meta-llama-Llama-3.1-8B-Instruct", "mistralai-Mistral-Nemo-Instruct-2407",
          "openai-gpt-oss-120b", "google-gemma-4-31B-it", "Kimi-K2-Instruct",
          "ibm-granite-granite-4.0"}) {
        const std::string text = read_template(name + ".jinja");
        ASSERT_FALSE(text.empty()) << name;
        const auto format = ChatFormat::make(model().handle(), text);
        ASSERT_TRUE(format) << name;
        auto request = ask("Ciao");
        request.tools = {weather()};
        request.tool_choice.kind = domain::ToolChoice::Kind::required;
        const auto forced = (*format)->render(request);
        ASSERT_TRUE(forced) << name << " " << forced.error().message();
        ASSERT_FALSE(forced->tool_grammar.empty()) << name;
        expect_followed(*forced, name);
        request.tool_choice.kind = domain::ToolChoice::Kind::automatic;
        const auto free = (*format)->render(request);
        ASSERT_TRUE(free) << name;
        if (!free->tool_grammar.empty()) expect_followed(*free, name);
    }
}

TEST(ChatFormat, says_when_a_template_has_no_tools) {
    const auto format =
        ChatFormat::make(model().handle(), read_template("google-gemma-2-2b-it.jinja"));
    auto request = ask("Ciao");
    request.tools = {weather()};
    request.tool_choice.kind = domain::ToolChoice::Kind::required;
    EXPECT_EQ((*format)->render(request).error().code(), ErrorCode::unsupported);
}

TEST(ChatFormat, keeps_reasoning_apart) {
    const auto format = ChatFormat::make(model().handle(), read_template("Qwen-Qwen3-0.6B.jinja"));
    const auto prompt = (*format)->render(ask("Ciao"));
    ASSERT_TRUE(prompt && prompt->reader);
    const std::string text = "<think>\nhm, hello\n</think>\n\nCiao a te!";
    for (const std::size_t step : {1U, 5U, 100U}) {
        const auto again = (*format)->render(ask("Ciao"));
        const auto response = read(*again->reader, text, step);
        EXPECT_THAT(response.reasoning.text(), testing::HasSubstr("hm, hello"));
        EXPECT_EQ(response.text.text(), "Ciao a te!") << step;
    }
}

}  // namespace
}  // namespace molly::engine
