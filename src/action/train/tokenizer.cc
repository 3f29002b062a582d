#include "train/tokenizer.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>

#include <fmt/format.h>

#include "base/utf8.h"
#include "seal/seal.h"
#include "train/internal/gguf_file.h"
#include "train/internal/merges.h"
#include "train/internal/pretokens.h"

namespace molly::train {
namespace {

/// The rest is kept for what later training needs to tell apart.
constexpr std::array<std::string_view, 16> special_names = {
    end_of_text,      turn_start,        turn_end,           "<tool_call>",
    "</tool_call>",   "<tool_response>", "</tool_response>", "<think>",
    "</think>",       "<|reserved_0|>",  "<|reserved_1|>",   "<|reserved_2|>",
    "<|reserved_3|>", "<|reserved_4|>",  "<|reserved_5|>",   "<|reserved_6|>"};

constexpr std::size_t piece_bytes = 1U << 20U;  // what is split at once, to the next line end

std::uint64_t key_of(Token left, Token right) {
    return (static_cast<std::uint64_t>(left) << 32U) | static_cast<std::uint64_t>(right);
}

Error cannot_use(const std::filesystem::path& file) {
    return Error(ErrorCode::invalid_request,
                 fmt::format("{} is not UTF-8 text; convert it first", file.filename().string()))
        .italian(
            fmt::format("{} non è testo UTF-8; va prima convertito", file.filename().string()));
}

}  // namespace

Result<std::string> read_text(const std::filesystem::path& file) {
    std::ifstream stream(file, std::ios::binary);
    if (!stream) {
        return fail(
            Error(ErrorCode::not_found, fmt::format("cannot read the text file {}", file.string()))
                .italian(fmt::format("impossibile leggere il testo {}", file.string())));
    }
    std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
    if (!utf8_valid(text)) return fail(cannot_use(file));
    return text;
}

Result<Tokenizer> Tokenizer::train(
    const std::vector<std::filesystem::path>& files, std::uint32_t vocabulary,
    const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
    if (vocabulary < 512 || vocabulary > 65'536) {
        return fail(Error(ErrorCode::invalid_request, "a vocabulary has 512 to 65536 tokens")
                        .italian("un vocabolario ha da 512 a 65536 token")
                        .param("vocabulary"));
    }
    WordCounts words;
    for (const auto& file : files) {
        TRY(const std::string text, read_text(file));
        for (std::size_t from = 0; from < text.size();) {
            const std::size_t line = text.find('\n', std::min(from + piece_bytes, text.size()));
            const std::size_t to = line == std::string::npos ? text.size() : line + 1;
            split_words(std::string_view(text).substr(from, to - from),
                        [&words](std::string_view word) { ++words[std::string(word)]; });
            from = to;
        }
    }
    const std::size_t wanted = vocabulary - special_names.size();
    auto learned = learn_merges(words, wanted, [&](std::size_t made) {
        if (progress) progress(made, wanted);
    });
    if (learned.bytes.size() < wanted) {
        return fail(Error(ErrorCode::invalid_request,
                          fmt::format("the text has pairs for {} tokens only; give more text or a "
                                      "smaller vocabulary",
                                      learned.bytes.size() + special_names.size()))
                        .italian(fmt::format("il testo basta per {} token; serve altro testo o un "
                                             "vocabolario più piccolo",
                                             learned.bytes.size() + special_names.size())));
    }
    Tokenizer tokenizer;
    tokenizer.bytes_ = std::move(learned.bytes);
    tokenizer.merges_ = std::move(learned.merges);
    tokenizer.special_from_ = static_cast<Token>(tokenizer.bytes_.size());
    for (const std::string_view name : special_names)
        tokenizer.bytes_.emplace_back(name);
    return tokenizer;
}

Result<Tokenizer> Tokenizer::load(const std::filesystem::path& file) {
    TRY(GgufVocabulary read, read_gguf_vocabulary(file));
    const auto broken = [&file] {
        return fail(Error(ErrorCode::unsupported,
                          fmt::format("{} has no vocabulary of this trainer; make one with molly "
                                      "train tokenizer",
                                      file.string()))
                        .italian(fmt::format("{} non ha un vocabolario di questo addestratore; "
                                             "si crea con molly train tokenizer",
                                             file.string())));
    };
    Tokenizer tokenizer;
    std::unordered_map<std::string, Token> ids;
    tokenizer.special_from_ = static_cast<Token>(read.special_from);
    for (std::string& bytes : read.bytes) {
        ids.emplace(bytes, static_cast<Token>(tokenizer.bytes_.size()));
        tokenizer.bytes_.push_back(std::move(bytes));
    }
    if (tokenizer.find_special(end_of_text) < 0 || tokenizer.bytes_.size() > 65'536)
        return broken();
    for (const auto& [left, right] : read.merges) {
        const auto a = ids.find(left);
        const auto b = ids.find(right);
        if (a == ids.end() || b == ids.end() || !ids.contains(left + right)) return broken();
        tokenizer.merges_.emplace_back(a->second, b->second);
    }
    for (int byte = 0; byte < 256; ++byte) {
        if (!ids.contains(std::string(1, static_cast<char>(byte)))) return broken();
    }
    return tokenizer;
}

Result<void> Tokenizer::save(const std::filesystem::path& file) const {
    return write_gguf_vocabulary(file, *this);
}

Token Tokenizer::find_special(std::string_view name) const noexcept {
    for (std::size_t i = static_cast<std::size_t>(special_from_); i < bytes_.size(); ++i) {
        if (bytes_[i] == name) return static_cast<Token>(i);
    }
    return -1;
}

std::string Tokenizer::fingerprint() const {
    seal::HashStream hash;
    for (const std::string& bytes : bytes_) {
        hash.add(std::to_string(bytes.size()));
        hash.add(":");
        hash.add(bytes);
    }
    for (const auto& [left, right] : merges_)
        hash.add(fmt::format("{},{};", left, right));
    return seal::to_hex(hash.take());
}

Encoder::Encoder(const Tokenizer& tokenizer) {
    std::unordered_map<std::string_view, Token> ids;
    for (Token id = 0; id < tokenizer.special_from_; ++id)
        ids.emplace(tokenizer.bytes(id), id);
    bytes_.resize(256);
    for (int byte = 0; byte < 256; ++byte)
        bytes_[static_cast<std::size_t>(byte)] = ids.at(std::string(1, static_cast<char>(byte)));
    std::uint32_t rank = 0;
    for (const auto& [left, right] : tokenizer.merges_) {
        const std::string spelled = tokenizer.bytes(left) + tokenizer.bytes(right);
        ranks_.emplace(key_of(left, right), Merge{rank++, ids.at(spelled)});
    }
}

void Encoder::encode(std::string_view text, std::vector<Token>& out) {
    split_words(text, [&](std::string_view word) {
        std::string key(word);
        auto known = seen_.find(key);
        if (known == seen_.end()) {
            constexpr std::size_t words_max = 1U << 20U;
            if (seen_.size() >= words_max) seen_.clear();
            known = seen_.emplace(std::move(key), merge(word)).first;
        }
        out.insert(out.end(), known->second.begin(), known->second.end());
    });
}

std::vector<Token> Encoder::encode(std::string_view text) {
    std::vector<Token> out;
    encode(text, out);
    return out;
}

std::vector<Token> Encoder::merge(std::string_view word) const {
    std::vector<Token> ids;
    for (const char byte : word)
        ids.push_back(bytes_[static_cast<unsigned char>(byte)]);
    for (;;) {
        Merge best{std::numeric_limits<std::uint32_t>::max(), -1};
        std::size_t where = 0;
        for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
            const auto found = ranks_.find(key_of(ids[i], ids[i + 1]));
            if (found == ranks_.end() || found->second.rank >= best.rank) continue;
            best = found->second;
            where = i;
        }
        if (best.result < 0) return ids;
        ids[where] = best.result;
        ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(where) + 1);
    }
}

}  // namespace molly::train
