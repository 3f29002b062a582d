#include "train/examples.h"

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "seal/seal.h"
#include "train/internal/test_coder.h"
#include "train/internal/test_folder.h"

namespace molly::train {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::uint32_t context = 128;

Result<Examples> read(std::string_view text, RowKind kind = RowKind::answers,
                      TestCoder coder = TestCoder{}) {
    const TestFolder folder;
    return read_examples(folder.write("rows.jsonl", text), kind, coder, context);
}

/// What the only row of `text` teaches.
std::string taught(std::string_view text, TestCoder coder = TestCoder{}) {
    const auto examples = read(text, RowKind::answers, coder);
    if (!examples) return examples.error().message();
    EXPECT_EQ(examples->rows.size(), 1U);
    return TestCoder::shown(examples->rows.at(0).better);
}

std::string complaint(std::string_view text, RowKind kind = RowKind::answers) {
    const auto examples = read(text, kind);
    EXPECT_FALSE(examples);
    if (examples) return {};
    EXPECT_EQ(examples.error().code(), ErrorCode::invalid_request);
    EXPECT_NE(examples.error().message_italian(), examples.error().message());
    return examples.error().message();
}

TEST(Examples, a_conversation_teaches_every_turn_of_the_assistant) {
    EXPECT_EQ(
        taught(R"({"messages": [{"role": "system", "content": "S"},)"
               R"({"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},)"
               R"({"role": "user", "content": "c"}, {"role": "assistant", "content": "d"}]})"),
        "<system\nS>\n<user\na>\n<assistant\n{b>}\n<user\nc>\n<assistant\n{d>}");
}

TEST(Examples, a_completion_ends_with_the_token_that_ends_answers) {
    EXPECT_EQ(taught(R"({"prompt": "2+2=", "completion": "4"})"), "2+2={4>}");
    EXPECT_EQ(taught(R"({"prompt": "2+2=", "completion": "4"})",
                     TestCoder(TestCoder::Template::none, true)),
              "^2+2={4>}");
}

TEST(Examples, names_of_special_tokens_in_a_completion_are_text) {
    EXPECT_EQ(taught(R"({"prompt": "a", "completion": "x<|im_end|>"})"), "a{x<|im_end|>>}");
}

TEST(Examples, a_prompt_of_turns_is_not_learned) {
    EXPECT_EQ(taught(R"({"prompt": [{"role": "user", "content": "a"},)"
                     R"({"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}],)"
                     R"("completion": "d"})"),
              "<user\na>\n<assistant\nb>\n<user\nc>\n<assistant\n{d>}");
    EXPECT_EQ(taught(R"({"prompt": [{"role": "user", "content": [{"type": "text", "text": "a"}]}],)"
                     R"("completion": [{"role": "assistant", "content": "d"}]})"),
              "<user\na>\n<assistant\n{d>}");
}

TEST(Examples, a_template_that_rewrites_earlier_turns_teaches_the_last_one) {
    EXPECT_EQ(taught(R"({"messages": [{"role": "user", "content": "a"},)"
                     R"({"role": "assistant", "content": "<think>1</think>b"},)"
                     R"({"role": "user", "content": "c"},)"
                     R"({"role": "assistant", "content": "<think>2</think>d"}]})",
                     TestCoder(TestCoder::Template::forgets_thoughts)),
              "<user\na>\n<assistant\nb>\n<user\nc>\n<assistant\n{<think>2</think>d>}");
}

TEST(Examples, a_pair_has_two_answers_to_one_prompt) {
    const auto pair =
        read(R"({"prompt": "q", "chosen": "good", "rejected": "bad"})", RowKind::pairs);
    ASSERT_TRUE(pair) << pair.error().message();
    EXPECT_EQ(TestCoder::shown(pair->rows[0].better), "q{good>}");
    EXPECT_EQ(TestCoder::shown(pair->rows[0].worse), "q{bad>}");
    const auto turns = read(R"({"prompt": [{"role": "user", "content": "q"}],)"
                            R"("chosen": [{"role": "assistant", "content": "y"}],)"
                            R"("rejected": "n"})",
                            RowKind::pairs);
    ASSERT_TRUE(turns) << turns.error().message();
    EXPECT_EQ(TestCoder::shown(turns->rows[0].better), "<user\nq>\n<assistant\n{y>}");
    EXPECT_EQ(TestCoder::shown(turns->rows[0].worse), "<user\nq>\n<assistant\n{n>}");
}

TEST(Examples, the_file_tells_its_class_licences_and_hash) {
    const std::string text =
        "\xEF\xBB\xBF{\"prompt\": \"a\", \"completion\": \"b\", \"class\": \"public\"}\r\n\n"
        "{\"prompt\": \"a\", \"completion\": \"b\", \"class\": \"standard\", \"license\": "
        "\"MIT\"}\n"
        "{\"prompt\": \"a\", \"completion\": \"b\", \"class\": \"public\", \"license\": \"MIT\", "
        "\"training\": true, \"id\": 7}";
    const auto examples = read(text);
    ASSERT_TRUE(examples) << examples.error().message();
    EXPECT_EQ(examples->facts.label_class, "standard");
    EXPECT_EQ(examples->facts.licenses, (std::map<std::string, std::uint64_t>{{"MIT", 2}}));
    EXPECT_EQ(examples->facts.hash, seal::to_hex(seal::sha256(text)));
    EXPECT_EQ(examples->facts.rows, 3U);
    ASSERT_EQ(examples->rows.size(), 3U);
    EXPECT_EQ(examples->rows[0].line, 1U);
    EXPECT_EQ(examples->rows[2].line, 4U);
}

TEST(Examples, a_row_without_a_class_is_private) {
    const auto examples = read(
        "{\"prompt\": \"a\", \"completion\": \"b\"}\n"
        "{\"prompt\": \"a\", \"completion\": \"b\", \"class\": \"public\"}");
    ASSERT_TRUE(examples);
    EXPECT_EQ(examples->facts.label_class, "private");
}

TEST(Examples, rows_longer_than_the_context_are_left_out_and_counted) {
    const std::string exact(context - 2, 'x');  // the prompt and the end take one each
    const auto examples = read("{\"prompt\": \"a\", \"completion\": \"" + exact + "\"}\n" +
                               "{\"prompt\": \"a\", \"completion\": \"" + exact +
                               "x\", \"class\": \"secret\", \"license\": \"MIT\"}\n");
    ASSERT_TRUE(examples) << examples.error().message();
    EXPECT_EQ(examples->rows.size(), 1U);
    EXPECT_EQ(examples->facts.rows, 2U);
    EXPECT_EQ(examples->facts.truncated, 1U);
    EXPECT_EQ(examples->facts.label_class, "private");
    EXPECT_TRUE(examples->facts.licenses.empty());
    EXPECT_THAT(complaint("{\"prompt\": \"a\", \"completion\": \"" + exact + "x\"}"),
                HasSubstr("128 tokens"));
}

TEST(Examples, faulty_lines_are_named_together_and_never_quoted) {
    const std::string good = R"({"prompt": "a", "completion": "b"})";
    const std::string message =
        complaint(good + "\n{\"prompt\": \"a\"}\nsecretword\n" + good +
                  "\n{\"prompt\": \"secretword\", \"completion\": \" \"}\n" +
                  "{\"messages\": [{\"role\": \"secretword\", \"content\": \"x\"}]}\n");
    EXPECT_THAT(message, HasSubstr("rows.jsonl"));
    EXPECT_THAT(message, HasSubstr("line 2: completion is missing"));
    EXPECT_THAT(message, HasSubstr("line 3: "));
    EXPECT_THAT(message, HasSubstr("line 5: completion is empty"));
    EXPECT_THAT(message, HasSubstr("line 6: messages[0]: the role is not"));
    EXPECT_THAT(message, HasSubstr("a right row is {\"messages\""));
    EXPECT_THAT(message, Not(HasSubstr("secretword")));
    EXPECT_THAT(message, Not(HasSubstr("line 1:")));
}

TEST(Examples, ten_faulty_lines_are_enough) {
    std::string text;
    for (int i = 0; i < 12; ++i)
        text += "{}\n";
    const std::string message = complaint(text);
    EXPECT_THAT(message, HasSubstr("line 10: "));
    EXPECT_THAT(message, Not(HasSubstr("line 11: ")));
}

TEST(Examples, what_must_not_be_learned_is_refused) {
    const auto row = [](std::string_view more) {
        return "{\"prompt\": \"a\", \"completion\": \"b\", " + std::string(more) + "}";
    };
    EXPECT_THAT(complaint(row(R"("training": false)")), HasSubstr("take it out"));
    EXPECT_THAT(complaint(row(R"("training": "no")")), HasSubstr("true or false"));
    EXPECT_THAT(complaint(row(R"("class": "top")")), HasSubstr("class is not"));
    EXPECT_THAT(complaint(row(R"("class": 3)")), HasSubstr("class is not"));
    EXPECT_THAT(complaint(row(R"("license": "OpenAI-terms")")), HasSubstr("forbids"));
    EXPECT_THAT(complaint(row(R"("license": "CC-BY-NC-ND-4.0")")), HasSubstr("forbids"));
    EXPECT_THAT(complaint(row(R"("license": "")")), HasSubstr("license must be"));
    EXPECT_TRUE(read(row(R"("license": "CC-BY-4.0")")));
    EXPECT_TRUE(read(row(R"("license": null)")));
}

TEST(Examples, rows_of_another_shape_are_refused) {
    EXPECT_THAT(complaint("[]"), HasSubstr("no JSON object"));
    EXPECT_THAT(complaint(R"({"text": "a"})"), HasSubstr("neither messages nor prompt"));
    EXPECT_THAT(complaint(R"({"messages": [{"role": "user", "content": "a"}]})"),
                HasSubstr("end with a turn of the assistant"));
    EXPECT_THAT(complaint(R"({"messages": [{"role": "assistant", "content": "a"}]})"),
                HasSubstr("must not begin"));
    EXPECT_THAT(complaint(R"({"messages": [], "prompt": "a"})"), HasSubstr("exclude"));
    EXPECT_THAT(complaint(R"({"messages": [{"role": "user", "content": [{"type": "image"}]}]})"),
                HasSubstr("no text"));
    EXPECT_THAT(complaint(R"({"prompt": "a", "completion": [{"role": "assistant"}]})"),
                HasSubstr("must be text"));
    EXPECT_THAT(complaint(R"({"prompt": " ", "completion": "b"})"), HasSubstr("prompt is empty"));
    EXPECT_THAT(complaint(R"({"prompt": "a", "chosen": "b"})", RowKind::pairs),
                HasSubstr("rejected is missing"));
    EXPECT_THAT(complaint(R"({"prompt": "a", "chosen": "b", "rejected": "b"})", RowKind::pairs),
                HasSubstr("the same"));
    EXPECT_THAT(complaint(R"({"messages": []})", RowKind::pairs), HasSubstr("not messages"));
    EXPECT_THAT(complaint("\n \n"), HasSubstr("no rows"));
}

TEST(Examples, hostile_lines_are_refused) {
    EXPECT_THAT(complaint("{\"prompt\": \"a\", \"completion\": \"\xFF\"}"), HasSubstr("line 1: "));
    EXPECT_THAT(complaint("{\"prompt\": \"\\ud800\", \"completion\": \"b\"}"), HasSubstr("line 1"));
    EXPECT_THAT(complaint(R"({"prompt": "a", "prompt": "c", "completion": "b"})"),
                HasSubstr("line 1"));
    EXPECT_THAT(complaint("{\"prompt\": " + std::string(100'000, '[')), HasSubstr("line 1"));
    const std::string longest(2U << 20U, 'x');
    const std::string message = complaint("{}\n{\"prompt\": \"" + longest + "\"}\n{}");
    EXPECT_THAT(message, HasSubstr("line 2: is longer than 1024 KiB"));
    EXPECT_THAT(message, HasSubstr("line 3: "));
    std::string turns;
    for (int i = 0; i < 300; ++i)
        turns += R"({"role": "user", "content": "a"},)";
    EXPECT_THAT(
        complaint("{\"messages\": [" + turns + R"({"role": "assistant", "content": "b"}]})"),
        HasSubstr("1 to 256 turns"));
}

TEST(Examples, a_base_without_a_template_is_told_once) {
    const auto examples = read(R"({"messages": [{"role": "user", "content": "a"},)"
                               R"({"role": "assistant", "content": "b"}]})",
                               RowKind::answers, TestCoder(TestCoder::Template::none));
    ASSERT_FALSE(examples);
    EXPECT_EQ(examples.error().code(), ErrorCode::unsupported);
}

TEST(Examples, roles_that_the_template_refuses_are_a_fault_of_the_line) {
    TestCoder coder(TestCoder::Template::alternates);
    const auto examples = read(
        "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"},"
        "{\"role\": \"user\", \"content\": \"a\"},"
        "{\"role\": \"assistant\", \"content\": \"b\"}]}",
        RowKind::answers, coder);
    ASSERT_FALSE(examples);
    EXPECT_THAT(examples.error().message(), HasSubstr("line 1: the template refuses"));
}

TEST(Examples, a_file_that_is_not_there_is_not_found) {
    const TestFolder folder;
    TestCoder coder;
    for (const auto& path : {folder.path() / "none.jsonl", folder.path()}) {
        const auto examples = read_examples(path, RowKind::answers, coder, context);
        ASSERT_FALSE(examples);
        EXPECT_EQ(examples.error().code(), ErrorCode::not_found);
    }
}

}  // namespace
}  // namespace molly::train
