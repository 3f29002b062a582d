#pragma once
// A small text with documents, and a vocabulary for it.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "train/internal/corpus.h"
#include "train/internal/test_folder.h"
#include "train/tokenizer.h"

namespace molly::train {

class TestCorpus {
public:
    TestCorpus() : tokenizer_(make_tokenizer()) {
        source_.file = folder_.write("text.txt", text(0));
    }

    const std::filesystem::path& folder() const { return folder_.path(); }
    const Tokenizer& tokenizer() const { return tokenizer_; }
    const Source& source() const { return source_; }
    /// Writes the vocabulary and gives its file.
    std::filesystem::path tokenizer_file() const {
        const auto file = folder_.path() / "tokenizer.gguf";
        EXPECT_TRUE(tokenizer_.save(file));
        return file;
    }
    void change() const { folder_.write("text.txt", text(7)); }

    Corpus open(double weight = 1) const {
        Source source = source_;
        source.weight = weight;
        auto opened = Corpus::open({source}, tokenizer_, 32, folder_.path() / "tokens");
        EXPECT_TRUE(opened) << opened.error().message();
        return *std::move(opened);
    }

private:
    static std::string text(std::size_t shift) {
        const std::string letters = "abcdefgilmnoprstuvz";
        std::string out;
        for (std::size_t i = 0; i < 150; ++i) {
            out += "documento " + std::to_string(i + shift) + ".\n";
            for (std::size_t k = 0; k < 120; ++k) {
                const std::size_t word = (i * 120 + k) * 37 % 900;
                out += {letters[word % 19], "aeiou"[word % 5], letters[word / 19 % 19],
                        "aeiou"[word / 7 % 5], ' '};
            }
            out += "\n\n";
        }
        return out;
    }

    static Tokenizer make_tokenizer() {
        const TestFolder folder;
        auto made = Tokenizer::train({folder.write("text.txt", text(0))}, 512);
        EXPECT_TRUE(made) << made.error().message();
        return *std::move(made);
    }

    TestFolder folder_;
    Tokenizer tokenizer_;
    Source source_;
};

}  // namespace molly::train
