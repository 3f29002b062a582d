#include "engine/vocabulary.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/internal/chat_format.h"
#include "engine/internal/model.h"

namespace molly::engine {
namespace {

using domain::Role;
using domain::text_message;

const Vocabulary& vocabulary() {
    static const std::unique_ptr<Vocabulary> opened = [] {
        auto made = Vocabulary::open(MOLLY_TEST_MODEL);
        EXPECT_TRUE(made) << made.error().message();
        return *std::move(made);
    }();
    return *opened;
}

const Model& model() {
    static const std::unique_ptr<Model> loaded = [] {
        EXPECT_TRUE(load_backends(MOLLY_LLAMA_LIBRARIES));
        return *Model::load(MOLLY_TEST_MODEL);
    }();
    return *loaded;
}

TEST(Vocabulary, splits_text_as_the_engine_does) {
    EXPECT_EQ(vocabulary().size(), model().tokens());
    for (const char* text : {"Ciao, perché no?", "<|im_start|>user\nCiao<|im_end|>\n", ""}) {
        auto expected = *model().tokenize(text, true);
        auto tokens = vocabulary().start();
        const auto rest = vocabulary().encode(text, true);
        ASSERT_TRUE(rest);
        tokens.insert(tokens.end(), rest->begin(), rest->end());
        EXPECT_EQ(tokens, expected) << text;
    }
}

TEST(Vocabulary, takes_names_of_special_tokens_as_text_unless_asked) {
    const auto plain = vocabulary().encode("<|im_end|>", false);
    const auto special = vocabulary().encode("<|im_end|>", true);
    ASSERT_TRUE(plain && special);
    EXPECT_GT(plain->size(), 1U);
    EXPECT_EQ(*special, std::vector{vocabulary().end()});
    EXPECT_TRUE(model().ends_answer(vocabulary().end()));
}

TEST(Vocabulary, opens_an_answer_as_the_engine_does) {
    const std::vector messages = {text_message(Role::system, "S"), text_message(Role::user, "a")};
    const auto open = vocabulary().render(messages, true);
    ASSERT_TRUE(open) << open.error().message();
    domain::Request request;
    request.messages = messages;
    EXPECT_EQ(*open, (*ChatFormat::make(model().handle()))->render(request)->text);
    EXPECT_TRUE(open->ends_with("<|im_start|>assistant\n"));
}

TEST(Vocabulary, a_finished_conversation_continues_its_opening) {
    std::vector messages = {text_message(Role::user, "a")};
    const auto open = vocabulary().render(messages, true);
    messages.push_back(text_message(Role::assistant, "b"));
    const auto whole = vocabulary().render(messages, false);
    ASSERT_TRUE(open && whole);
    EXPECT_EQ(*whole, *open + "b<|im_end|>\n");
}

TEST(Vocabulary, files_that_are_no_model_are_told_apart) {
    const auto folder = std::filesystem::temp_directory_path();
    const auto none = Vocabulary::open(folder / "molly-no-such-model.gguf");
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code(), ErrorCode::not_found);
    const auto file = folder / "molly-vocabulary-test.gguf";
    std::ofstream(file) << "GGUF, but not really";
    const auto damaged = Vocabulary::open(file);
    std::filesystem::remove(file);
    ASSERT_FALSE(damaged);
    EXPECT_EQ(damaged.error().code(), ErrorCode::corrupt);
}

}  // namespace
}  // namespace molly::engine
