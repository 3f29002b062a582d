#include "train/tokenizer.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <llama.h>
#include <unistd.h>

#include "train/internal/test_folder.h"

namespace molly::train {
namespace {

const std::string italian =
    "L'acqua dell'isola è più fredda di quanto c'era scritto: 1.234,56 € il 30/11/2026!\n"
    "«Perché no?», disse; un po' d'aria, l'ha già detto... ch'io sappia.\n\n\n   Tre spazi\t e "
    "tab.  \n";
const std::string english =
    "It's a test: they'll've DON'T we're I'd \"quoted\" text -- e.g. 42 apples, 3.14\r\n"
    "emails like a_b@example.org; naïve café — Ω≈ç√ 日本語 😀👍🏽 end \u00A0x\n";

Tokenizer trained() {
    const TestFolder folder;
    std::string text;
    for (int i = 0; i < 20; ++i)
        text += italian + english;
    // Words of two syllables, which repeat, so that there are pairs enough.
    const std::string letters = "abcdefgilmnoprstuvz";
    for (std::size_t i = 0; i < 6000; ++i) {
        const std::size_t word = i * 37 % 900;
        text += {letters[word % 19], "aeiou"[word % 5], letters[word / 19 % 19],
                 "aeiou"[word / 7 % 5], ' '};
    }
    const auto file = folder.write("text.txt", text);
    auto made = Tokenizer::train({file}, 600);
    EXPECT_TRUE(made) << made.error().message();
    return *std::move(made);
}

std::string decode(const Tokenizer& tokenizer, const std::vector<Token>& tokens) {
    std::string out;
    for (const Token token : tokens)
        out += tokenizer.bytes(token);
    return out;
}

/// llama.cpp's own reading of a vocabulary file.
class LlamaVocabulary {
public:
    explicit LlamaVocabulary(const std::filesystem::path& file) {
        llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
        llama_model_params params = llama_model_default_params();
        params.vocab_only = true;
        model_ = llama_model_load_from_file(file.c_str(), params);
    }
    LlamaVocabulary(const LlamaVocabulary&) = delete;
    LlamaVocabulary& operator=(const LlamaVocabulary&) = delete;
    LlamaVocabulary(LlamaVocabulary&&) = delete;
    LlamaVocabulary& operator=(LlamaVocabulary&&) = delete;
    ~LlamaVocabulary() { llama_model_free(model_); }

    bool loaded() const { return model_ != nullptr; }
    std::vector<Token> encode(const std::string& text, bool special = false) const {
        std::vector<Token> tokens(text.size() + 8);
        const int count = llama_tokenize(llama_model_get_vocab(model_), text.data(),
                                         static_cast<std::int32_t>(text.size()), tokens.data(),
                                         static_cast<std::int32_t>(tokens.size()), false, special);
        EXPECT_GE(count, 0);
        tokens.resize(static_cast<std::size_t>(std::max(count, 0)));
        return tokens;
    }

private:
    llama_model* model_;
};

TEST(Tokenizer, llama_cpp_tokenizes_identically) {
    const TestFolder folder;
    const Tokenizer tokenizer = trained();
    const auto file = folder.path() / "vocabulary.gguf";
    ASSERT_TRUE(tokenizer.save(file));
    const LlamaVocabulary llama(file);
    ASSERT_TRUE(llama.loaded());
    Encoder encoder(tokenizer);
    for (const std::string& text :
         {italian, english, italian + english, std::string(" "), std::string("  "),
          std::string("\n\n x"), std::string("'S 'LL a'b ''"), std::string("l'l'l'"),
          std::string("a\u0301b\u200Dc\u2028d"), std::string("١٢٣ ⅷ ²x")}) {
        EXPECT_EQ(encoder.encode(text), llama.encode(text)) << text;
    }
}

TEST(Tokenizer, special_tokens_are_known_to_llama_cpp) {
    const TestFolder folder;
    const Tokenizer tokenizer = trained();
    const auto file = folder.path() / "vocabulary.gguf";
    ASSERT_TRUE(tokenizer.save(file));
    const LlamaVocabulary llama(file);
    ASSERT_TRUE(llama.loaded());
    const auto tokens = llama.encode("<|im_start|>user\nCiao<|im_end|>", true);
    EXPECT_EQ(tokens.front(), tokenizer.find_special(turn_start));
    EXPECT_EQ(tokens.back(), tokenizer.find_special(turn_end));
}

TEST(Tokenizer, tokens_spell_the_text) {
    const Tokenizer tokenizer = trained();
    Encoder encoder(tokenizer);
    const auto tokens = encoder.encode(italian + english);
    EXPECT_EQ(decode(tokenizer, tokens), italian + english);
    EXPECT_LT(tokens.size(), (italian + english).size() * 3 / 4);
}

TEST(Tokenizer, what_was_saved_is_what_loads) {
    const TestFolder folder;
    const Tokenizer tokenizer = trained();
    const auto file = folder.path() / "vocabulary.gguf";
    ASSERT_TRUE(tokenizer.save(file));
    const auto loaded = Tokenizer::load(file);
    ASSERT_TRUE(loaded) << loaded.error().message();
    EXPECT_EQ(loaded->fingerprint(), tokenizer.fingerprint());
}

TEST(Tokenizer, the_same_text_gives_the_same_vocabulary) {
    EXPECT_EQ(trained().fingerprint(), trained().fingerprint());
}

TEST(Tokenizer, too_little_text_is_refused) {
    const TestFolder folder;
    const auto made = Tokenizer::train({folder.write("text.txt", "a b a b a b\n")}, 512);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code(), ErrorCode::invalid_request);
}

TEST(Tokenizer, text_that_is_not_utf8_is_refused) {
    const TestFolder folder;
    const auto made = Tokenizer::train({folder.write("text.txt", "abc \xFF\xFE")}, 512);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code(), ErrorCode::invalid_request);
}

}  // namespace
}  // namespace molly::train
