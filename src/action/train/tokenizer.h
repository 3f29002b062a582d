#pragma once
// A byte-level BPE vocabulary: learned from text, written into GGUF as llama.cpp reads it (model
// `gpt2`, pre-tokenizer `qwen2`), and an encoder that gives the same tokens. Immutable once made,
// but for the encoder's memory of words: one Encoder per thread.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"

namespace molly::train {

using Token = std::int32_t;

/// Ends a document, and stands between documents.
inline constexpr std::string_view end_of_text = "<|endoftext|>";
inline constexpr std::string_view turn_start = "<|im_start|>";
inline constexpr std::string_view turn_end = "<|im_end|>";

/// A whole text file. Errors: not_found, invalid_request (not UTF-8).
Result<std::string> read_text(const std::filesystem::path& file);

class Tokenizer {
public:
    /// Learns from text files, in their order. `vocabulary` counts everything: 256 bytes, what
    /// merges give, 16 special tokens. Errors: not_found, invalid_request (a file that is not
    /// UTF-8, a size that does not fit in 512 to 65,536, too little text).
    static Result<Tokenizer> train(
        const std::vector<std::filesystem::path>& files, std::uint32_t vocabulary,
        const std::function<void(std::uint64_t, std::uint64_t)>& progress = {});
    /// Reads the vocabulary of a GGUF file that this trainer wrote. Errors: not_found, corrupt,
    /// unsupported (another kind of vocabulary).
    static Result<Tokenizer> load(const std::filesystem::path& file);
    /// Writes a GGUF file without weights. Errors: unavailable.
    Result<void> save(const std::filesystem::path& file) const;

    std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(bytes_.size()); }
    /// The bytes of a token; the name of a special one.
    const std::string& bytes(Token token) const { return bytes_[static_cast<std::size_t>(token)]; }
    bool special(Token token) const noexcept { return token >= special_from_; }
    /// The id of a special token, or -1.
    Token find_special(std::string_view name) const noexcept;
    /// Rules in the order in which they were learned.
    const std::vector<std::pair<Token, Token>>& merges() const noexcept { return merges_; }
    /// SHA-256 of everything that decides how text is split, hex.
    std::string fingerprint() const;

private:
    friend class Encoder;
    Tokenizer() = default;

    std::vector<std::string> bytes_;
    std::vector<std::pair<Token, Token>> merges_;
    Token special_from_ = 0;
};

/// Turns text into tokens, and remembers words that it has seen. Special tokens in the text are
/// taken as plain text. The tokenizer must outlive it.
class Encoder {
public:
    explicit Encoder(const Tokenizer& tokenizer);
    /// Appends the tokens of valid UTF-8 text.
    void encode(std::string_view text, std::vector<Token>& out);
    std::vector<Token> encode(std::string_view text);

private:
    std::vector<Token> merge(std::string_view word) const;

    struct Merge {
        std::uint32_t rank;
        Token result;
    };
    std::vector<Token> bytes_;  // the token of each byte
    std::unordered_map<std::uint64_t, Merge> ranks_;
    std::unordered_map<std::string, std::vector<Token>> seen_;
};

}  // namespace molly::train
