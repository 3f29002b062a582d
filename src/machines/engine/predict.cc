#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <fmt/format.h>

#include "engine/head.h"
#include "engine/internal/batch.h"
#include "engine/internal/model.h"
#include "engine/internal/threads.h"

namespace molly::engine {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t window_tokens = 512;
constexpr std::uint32_t window_least = 32;
// Logits of a large vocabulary are half a megabyte a token.
constexpr std::uint32_t step_tokens = 64;
constexpr std::uint32_t streams = 8;

/// A window of tokens; those from `from` on are predicted.
struct Window {
    std::vector<Token> tokens;
    std::size_t from = 1;
};

Result<ContextPtr> make_context(const Model& model, std::uint32_t window, std::uint32_t sequences) {
    ContextPtr context = new_context(model, {.context_tokens = window,
                                             .sequences = sequences,
                                             .step_tokens = step_tokens,
                                             .threads = free_cores(),
                                             .kept_threads = {}});
    if (context) return context;
    return fail(ErrorCode::exhausted, "no memory for the model's context; close something");
}

/// The natural logarithm of the probability that logits give a token. shape: [vocabulary]
double log_probability(const float* logits, std::size_t count, Token token) {
    const float largest = *std::max_element(logits, logits + count);
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i)
        sum += std::exp(static_cast<double>(logits[i] - largest));
    return static_cast<double>(logits[token] - largest) - std::log(sum);
}

Token draw(const float* logits, std::size_t count, std::mt19937_64& random,
           std::vector<double>& shares) {
    const float largest = *std::max_element(logits, logits + count);
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i)
        shares[i] = sum += std::exp(static_cast<double>(logits[i] - largest));
    const double at = std::uniform_real_distribution<double>(0, sum)(random);
    const auto found = std::upper_bound(shares.begin(), shares.end(), at);
    return static_cast<Token>(
        std::min<std::ptrdiff_t>(found - shares.begin(), static_cast<std::ptrdiff_t>(count) - 1));
}

/// Where a text begins for this model.
Token first_token(const Model& model) {
    const Token begin = llama_vocab_bos(model.vocabulary());
    if (begin != LLAMA_TOKEN_NULL) return begin;
    const Token end = llama_vocab_eos(model.vocabulary());
    return end != LLAMA_TOKEN_NULL ? end : 0;
}

class Progress {
public:
    Progress(const PredictionOptions& options, std::uint64_t total)
        : options_(options), total_(total) {}
    void advance(std::uint64_t by) {
        done_ += by;
        if (options_.progress) options_.progress(std::min(done_, total_), total_);
    }

private:
    const PredictionOptions& options_;
    std::uint64_t total_;
    std::uint64_t done_ = 0;
};

/// Text from the model's own distribution, at temperature 1, some at a time.
Result<std::vector<Window>> write_text(const Model& model, std::uint32_t window,
                                       std::uint64_t tokens, Progress& progress) {
    const std::size_t count = model.tokens();
    const auto length = static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>(tokens / streams, window_least, window - 1));
    TRY(const ContextPtr context, make_context(model, window, streams));
    std::vector<Window> windows(streams);
    for (Window& each : windows)
        each.tokens.push_back(first_token(model));
    std::mt19937_64 random(1);
    std::vector<double> shares(count);
    Batch batch(streams);
    for (std::uint32_t at = 0; at < length; ++at) {
        batch.clear();
        for (std::uint32_t i = 0; i < streams; ++i)
            batch.add(windows[i].tokens.back(), static_cast<llama_pos>(at),
                      static_cast<llama_seq_id>(i), true);
        if (llama_decode(context.get(), batch.view()) != 0)
            return fail(ErrorCode::internal, "the model could not be computed");
        for (std::uint32_t i = 0; i < streams; ++i)
            windows[i].tokens.push_back(
                draw(llama_get_logits_ith(context.get(), static_cast<std::int32_t>(i)), count,
                     random, shares));
        progress.advance(streams);
    }
    return windows;
}

Result<std::vector<Window>> cut_text(const Model& model, std::uint32_t window,
                                     const PredictionOptions& options) {
    TRY(const std::vector<Token> tokens, model.tokenize(options.text, false));
    const bool begins = llama_vocab_get_add_bos(model.vocabulary());
    const std::size_t room = begins ? window - 1 : window;
    std::vector<Window> windows;
    std::uint64_t predicted = 0;
    for (std::size_t at = 0; at < tokens.size() && predicted < options.tokens; at += room) {
        const std::size_t end = std::min(tokens.size(), at + room);
        if (end - at < window_least) break;
        Window each;
        if (begins) each.tokens.push_back(llama_vocab_bos(model.vocabulary()));
        each.tokens.insert(each.tokens.end(), tokens.begin() + static_cast<std::ptrdiff_t>(at),
                           tokens.begin() + static_cast<std::ptrdiff_t>(end));
        each.from = each.tokens.size() / 2;
        predicted += each.tokens.size() - each.from;
        windows.push_back(std::move(each));
    }
    if (!windows.empty()) return windows;
    return fail(
        Error(ErrorCode::invalid_request,
              fmt::format("the text has {} tokens; give at least {}", tokens.size(), window_least))
            .italian(
                fmt::format("il testo ha {} token; darne almeno {}", tokens.size(), window_least)));
}

/// Log-probabilities of all predicted tokens, in order.
Result<std::vector<double>> predict(const Model& model, std::uint32_t window,
                                    const std::vector<Window>& windows, Progress& progress) {
    TRY(const ContextPtr context, make_context(model, window, 1));
    std::vector<double> found;
    Batch batch(step_tokens);
    for (const Window& each : windows) {
        llama_memory_clear(llama_get_memory(context.get()), false);
        const std::size_t last = each.tokens.size() - 1;
        for (std::size_t at = 0; at < last; at += step_tokens) {
            const std::size_t end = std::min<std::size_t>(at + step_tokens, last);
            batch.clear();
            for (std::size_t i = at; i < end; ++i)
                batch.add(each.tokens[i], static_cast<llama_pos>(i), 0, i + 1 >= each.from);
            if (llama_decode(context.get(), batch.view()) != 0)
                return fail(ErrorCode::internal, "the model could not be computed");
            for (std::size_t i = std::max(at, each.from - 1); i < end; ++i)
                found.push_back(log_probability(
                    llama_get_logits_ith(context.get(), static_cast<std::int32_t>(i - at)),
                    model.tokens(), each.tokens[i + 1]));
            progress.advance(end - at);
        }
    }
    return found;
}

PredictionChange summarize(const std::vector<double>& before, const std::vector<double>& after) {
    PredictionChange change;
    change.tokens = before.size();
    const auto count = static_cast<double>(before.size());
    double sum_before = 0;
    double sum = 0;
    double squares = 0;
    for (std::size_t i = 0; i < before.size(); ++i) {
        const double added = before[i] - after[i];
        sum_before -= before[i];
        sum += added;
        squares += added * added;
    }
    change.nats = sum / count;
    const double variance = std::max(0.0, squares / count - change.nats * change.nats);
    change.nats_error = 1.96 * std::sqrt(variance / count);
    change.perplexity_before = std::exp(sum_before / count);
    change.perplexity_after = std::exp(sum_before / count + change.nats);
    return change;
}

}  // namespace

Result<PredictionChange> compare_predictions(const fs::path& before, const fs::path& after,
                                             const PredictionOptions& options) {
    TRY_DO(load_backends(options.backends.empty() ? fs::path(MOLLY_LLAMA_LIBRARIES)
                                                  : options.backends));
    Progress progress(options, options.tokens * (options.text.empty() ? 3 : 4));
    std::vector<Window> windows;
    std::vector<double> first;
    std::uint32_t window = 0;
    std::size_t vocabulary = 0;
    {
        TRY(const auto model, Model::load(before));
        vocabulary = model->tokens();
        window = std::min(window_tokens,
                          std::max(window_least + 1, model->description().context_tokens_max));
        TRY(windows, options.text.empty() ? write_text(*model, window, options.tokens, progress)
                                          : cut_text(*model, window, options));
        TRY(first, predict(*model, window, windows, progress));
    }
    TRY(const auto model, Model::load(after));
    if (model->tokens() != vocabulary) {
        return fail(ErrorCode::conflict,
                    fmt::format("{} has another vocabulary than {}: they are not one model",
                                after.string(), before.string()));
    }
    TRY(const std::vector<double> second, predict(*model, window, windows, progress));
    PredictionChange change = summarize(first, second);
    change.own_text = options.text.empty();
    return change;
}

}  // namespace molly::engine
