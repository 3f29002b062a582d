#include "train/internal/corpus.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "seal/seal.h"
#include "train/internal/random.h"
#include "train/internal/whole_file.h"

namespace molly::train {
namespace {

constexpr std::size_t piece_bytes = 4096;
constexpr std::string_view cache_magic = "MOLLYTK1";

/// One of a hundred, by its number alone: every run holds the same pieces out.
bool holds_out(std::uint64_t piece) {
    return Random::mix(piece + 0x9E3779B97F4A7C15ULL) % 100 == 0;
}

/// The end of the piece that begins at `from`: a blank line, or a line end behind 4 KiB.
std::size_t piece_end(std::string_view text, std::size_t from, bool& document_ends) {
    std::size_t at = from;
    while (at < text.size()) {
        const std::size_t line = text.find('\n', at);
        if (line == std::string_view::npos) break;
        const std::size_t next = line + 1;
        if (next < text.size() && text[next] == '\n') {
            document_ends = true;
            return next + 1;
        }
        if (next - from >= piece_bytes) {
            document_ends = false;
            return next;
        }
        at = next;
    }
    document_ends = true;
    return text.size();
}

void close_document(std::vector<std::uint16_t>& tokens, Token separator) {
    const auto mark = static_cast<std::uint16_t>(separator);
    if (!tokens.empty() && tokens.back() != mark) tokens.push_back(mark);
}

void tokenize(std::string_view text, Encoder& encoder, Token separator, SourceTokens& out,
              const std::function<void(std::uint64_t)>& progress) {
    std::vector<Token> tokens;
    std::uint64_t piece = 0;
    for (std::size_t from = 0; from < text.size(); ++piece) {
        bool document_ends = true;
        const std::size_t to = piece_end(text, from, document_ends);
        // The middle piece of a short file, where chance might hold out none.
        const bool held = holds_out(piece) || (from <= text.size() / 2 && to > text.size() / 2);
        std::string_view words = text.substr(from, to - from);
        while (words.ends_with("\n\n"))
            words.remove_suffix(1);
        tokens.clear();
        encoder.encode(words, tokens);
        auto& part = held ? out.held_out : out.training;
        std::transform(tokens.begin(), tokens.end(), std::back_inserter(part),
                       [](Token token) { return static_cast<std::uint16_t>(token); });
        // What follows a held-out piece does not continue what came before it.
        if (held) close_document(out.training, separator);
        if (held || document_ends) close_document(part, separator);
        from = to;
        if (progress && piece % 64 == 0) progress(from);
    }
    close_document(out.training, separator);
}

void append(std::string& out, const std::vector<std::uint16_t>& tokens) {
    const std::uint64_t count = tokens.size();
    out.append(reinterpret_cast<const char*>(&count), sizeof count);
    out.append(reinterpret_cast<const char*>(tokens.data()), tokens.size() * sizeof(tokens[0]));
}

bool take(std::string_view& from, std::vector<std::uint16_t>& tokens) {
    std::uint64_t count = 0;
    if (from.size() < sizeof count) return false;
    std::memcpy(&count, from.data(), sizeof count);
    from.remove_prefix(sizeof count);
    if (count > from.size() / sizeof(tokens[0])) return false;
    tokens.resize(count);
    std::memcpy(tokens.data(), from.data(), count * sizeof(tokens[0]));
    from.remove_prefix(count * sizeof(tokens[0]));
    return true;
}

bool read_cache(const std::filesystem::path& file, const std::string& key, SourceTokens& out) {
    std::ifstream stream(file, std::ios::binary);
    const std::string all{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
    std::string_view rest = all;
    if (!rest.starts_with(key)) return false;
    rest.remove_prefix(key.size());
    return take(rest, out.training) && take(rest, out.held_out) && rest.empty();
}

std::uint64_t windows_in(std::size_t tokens, std::uint64_t offset, std::uint32_t context) {
    return tokens <= offset + context ? 0 : (tokens - 1 - offset) / context;
}

}  // namespace

BatchArrays::BatchArrays(std::size_t sequences, std::size_t tokens)
    : sequences_(sequences),
      tokens_(tokens),
      input_(sequences * tokens),
      target_(sequences * tokens),
      weight_(sequences * tokens, 1.0F),
      first_(sequences * tokens) {}

void BatchArrays::set(std::size_t sequence, const std::uint16_t* from, Token separator) {
    std::uint32_t first = 0;
    for (std::size_t t = 0; t < tokens_; ++t) {
        const std::size_t at = sequence * tokens_ + t;
        input_[at] = from[t];
        target_[at] = from[t + 1];
        first_[at] = first;
        if (input_[at] == separator) {
            // What begins a document cannot be told from the one before: it sees its separator.
            first = static_cast<std::uint32_t>(t);
            first_[at] = first;
        }
    }
}

Batch BatchArrays::view(std::size_t sequences) const {
    Batch batch;
    batch.sequences = sequences;
    batch.tokens = tokens_;
    batch.input = {input_.data(), sequences * tokens_};
    batch.target = {target_.data(), sequences * tokens_};
    batch.weight = {weight_.data(), sequences * tokens_};
    batch.first = {first_.data(), sequences * tokens_};
    return batch;
}

Result<Corpus> Corpus::open(const std::vector<Source>& sources, const Tokenizer& tokenizer,
                            std::uint32_t context, const std::filesystem::path& cache,
                            const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
    Corpus corpus;
    corpus.context_ = context;
    corpus.separator_ = tokenizer.find_special(end_of_text);
    const std::string vocabulary = tokenizer.fingerprint();
    std::error_code error;
    std::filesystem::create_directories(cache, error);
    std::uint64_t total = 0;
    for (const Source& source : sources)
        total += std::filesystem::file_size(source.file, error);
    std::uint64_t done = 0;
    Encoder encoder(tokenizer);
    for (const Source& source : sources) {
        TRY(const std::string text, read_text(source.file));
        SourceTokens tokens;
        tokens.name = source.file.filename().string();
        tokens.hash = seal::to_hex(seal::sha256(text));
        tokens.bytes = text.size();
        tokens.weight = source.weight;
        const std::string key = std::string(cache_magic) + vocabulary + tokens.hash;
        const auto cached =
            cache / fmt::format("{:02}-{}.tokens", corpus.sources_.size(), tokens.name);
        if (!read_cache(cached, key, tokens)) {
            tokens.training.clear();
            tokens.held_out.clear();
            tokenize(text, encoder, corpus.separator_, tokens, [&](std::uint64_t bytes) {
                if (progress) progress(done + bytes, total);
            });
            std::string bytes = key;
            append(bytes, tokens.training);
            append(bytes, tokens.held_out);
            TRY_DO(write_whole(cached, bytes));
        }
        done += text.size();
        corpus.sources_.push_back(std::move(tokens));
    }
    if (corpus.training_tokens() < context + 1ULL || corpus.held_out(-1, 1).empty()) {
        return fail(Error(ErrorCode::invalid_request,
                          fmt::format("the text is too short for sequences of {} tokens; give more",
                                      context))
                        .italian(fmt::format("il testo è troppo corto per sequenze di {} token; "
                                             "serve altro testo",
                                             context)));
    }
    return corpus;
}

std::uint64_t Corpus::training_tokens() const noexcept {
    double sum = 0;
    for (const SourceTokens& source : sources_) {
        const auto windows = windows_in(source.training.size(), 0, context_);
        sum += source.weight * static_cast<double>(windows * context_);
    }
    return static_cast<std::uint64_t>(sum);
}

const std::vector<Corpus::Window>& Corpus::epoch(std::uint64_t number, std::uint64_t seed) const {
    if (order_epoch_ == number && order_seed_ == seed) return order_;
    order_epoch_ = number;
    order_seed_ = seed;
    order_.clear();
    Random random(seed, 0xE90C'0000ULL + number);
    for (std::uint32_t s = 0; s < sources_.size(); ++s) {
        const SourceTokens& source = sources_[s];
        for (double left = source.weight; left > 0; left -= 1) {
            // Every reading cuts at other places.
            const std::uint64_t offset = random.below(context_);
            const std::uint64_t windows = windows_in(source.training.size(), offset, context_);
            for (std::uint64_t w = 0; w < windows; ++w) {
                if (left < 1 && random.uniform() >= left) continue;
                order_.emplace_back(s, offset + w * context_);
            }
        }
    }
    if (order_.empty()) order_.emplace_back(0U, 0U);
    for (std::size_t i = order_.size(); i > 1; --i)
        std::swap(order_[i - 1], order_[random.below(i)]);
    return order_;
}

void Corpus::fill(BatchArrays& batch, std::uint64_t step, std::uint64_t seed) const {
    // Epochs differ a little in length, so the way to a position leads through those before it.
    std::uint64_t position = step * batch.sequences();
    std::uint64_t number = 0;
    while (position >= epoch(number, seed).size())
        position -= epoch(number++, seed).size();
    for (std::size_t s = 0; s < batch.sequences(); ++s) {
        if (position >= epoch(number, seed).size()) {
            ++number;
            position = 0;
        }
        const auto& [source, from] = epoch(number, seed)[position++];
        batch.set(s, sources_[source].training.data() + from, separator_);
    }
}

std::vector<const std::uint16_t*> Corpus::held_out(int source, std::size_t windows_max) const {
    std::vector<const std::uint16_t*> all;
    for (int s = 0; s < static_cast<int>(sources_.size()); ++s) {
        if (source >= 0 && s != source) continue;
        const auto& tokens = sources_[static_cast<std::size_t>(s)].held_out;
        for (std::uint64_t w = 0; w < windows_in(tokens.size(), 0, context_); ++w)
            all.push_back(tokens.data() + w * context_);
    }
    std::vector<const std::uint16_t*> out;
    const std::size_t count = std::min(windows_max, all.size());
    for (std::size_t i = 0; i < count; ++i)
        out.push_back(all[i * all.size() / count]);
    return out;
}

}  // namespace molly::train
