#pragma once
// What tests of whole runs need: a vocabulary, a watch that stops a run, and files as bytes.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "train/examples.h"
#include "train/internal/test_llama.h"
#include "train/train.h"

namespace molly::train {

/// The small vocabulary, and a template without a name of its own.
class SmallCoder : public TextCoder {
public:
    Result<std::vector<Token>> encode(const std::string& text, bool /*special*/) override {
        return encoder_.encode(text);
    }
    Result<std::string> render(std::span<const Turn> turns, bool open) override {
        std::string out;
        for (const Turn& turn : turns)
            out += turn.role + ": " + turn.text + "\n";
        return open ? out + "assistant: " : out;
    }
    Token end_of_answer() const override { return tokenizer_.find_special(turn_end); }
    std::string fingerprint() const override { return tokenizer_.fingerprint(); }

private:
    Tokenizer tokenizer_ = small_tokenizer();
    Encoder encoder_{tokenizer_};
};

class TestWatch : public Watch {
public:
    explicit TestWatch(std::uint64_t stop_at = 0) : stop_at_(stop_at) {}
    void prepare(const char*, std::uint64_t, std::uint64_t) override {}
    void progress(const Progress& now) override { last = now; }
    bool stop() override { return stop_at_ != 0 && last.step >= stop_at_; }

    Progress last;

private:
    std::uint64_t stop_at_;
};

inline std::string bytes_of(const std::filesystem::path& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

}  // namespace molly::train
