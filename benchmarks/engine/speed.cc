// The engine alone, without HTTP, beside what the machine can do.
//
//   bench_engine FOLDER [ROUNDS [TOKENS]]      (base.gguf and adapter-NN.gguf, as make_models
//   writes)
//
// Tokens per second are those of all requests of a batch, from the moment at which the last one
// began to answer, so that reading the prompts does not count. Every round runs every case, so that
// a noisy minute hits all of them. The limits are measured before and after, the best counts.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <fmt/format.h>
#include <sys/resource.h>

#include "base/coroutine.h"
#include "engine/engine.h"
#include "limits.h"

namespace {

namespace fs = std::filesystem;
using molly::Task;
using Clock = std::chrono::steady_clock;

double seconds(Clock::duration time) {
    return std::chrono::duration<double>(time).count();
}

double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

double cpu_seconds() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

class Timer final : public molly::engine::DeltaSink {
public:
    Task<molly::Result<void>> write(const molly::domain::Delta& delta) override {
        if (tokens == 0) first = Clock::now();
        came.push_back(Clock::now());
        if (delta.usage) tokens = delta.usage->answer_tokens;
        tokens = std::max(tokens, 1U);
        co_return molly::Result<void>();
    }
    Clock::time_point first;
    std::vector<Clock::time_point> came;  // the pieces, which are tokens
    std::uint32_t tokens = 0;
};

struct Measured {
    double tokens_per_second = 0;
    double first_seconds = 0;  // until the last request's first token
    double cpu_tokens_per_second = 0;
};

struct Batch {
    std::uint32_t requests = 1;
    std::uint32_t adapters = 0;
    std::uint32_t prompt_words = 24;
    std::uint32_t tokens = 64;
    bool every_other = false;  // the others end at once, so that their places lie between
    float temperature = 0;
};

/// Answers of noise seldom end by themselves; with log-probabilities every token is a Delta.
molly::domain::Request request_of(const Batch& batch, std::uint32_t number) {
    molly::domain::Request request;
    request.operation = molly::domain::Operation::complete;
    std::string text = fmt::format("{} ", number);
    for (std::uint32_t i = 0; i < batch.prompt_words; ++i)
        text += fmt::format("word{} ", (number * 7919 + i * 104729) % 997);
    request.prompt = molly::domain::Content(std::move(text));
    request.sampling.temperature = batch.temperature;
    request.sampling.seed = number;
    request.sampling.logprobs = true;
    request.sampling.answer_tokens_max = batch.every_other && number % 2 == 1 ? 2 : batch.tokens;
    request.cancellation = std::make_shared<molly::Cancellation>();
    return request;
}

Measured measure(molly::engine::Engine& engine, const fs::path& folder, const Batch& batch,
                 std::uint32_t seed) {
    boost::asio::io_context io;
    std::vector<Timer> timers(batch.requests);
    const auto started = Clock::now();
    const double cpu = cpu_seconds();
    for (std::uint32_t i = 0; i < batch.requests; ++i) {
        molly::spawn(io.get_executor(), [&, i]() -> Task<void> {
            const auto request = request_of(batch, seed * 1000 + i);
            std::vector<molly::engine::AdapterUse> uses;
            if (batch.adapters > 0) {
                molly::engine::AdapterUse use;
                use.id = use.hash = fmt::format("adapter-{:02}", i % batch.adapters);
                use.file = folder / (use.id + ".gguf");
                uses.push_back(std::move(use));
            }
            const auto answered =
                co_await engine.generate_with(request, std::move(uses), timers[i]);
            if (!answered) {
                fmt::print(stderr, "{}\n", answered.error().message());
                std::exit(1);
            }
        });
    }
    io.run();
    Measured measured;
    std::uint32_t tokens = 0;
    auto slowest = timers.front().first;
    for (const Timer& timer : timers) {
        tokens += timer.tokens;
        slowest = std::max(slowest, timer.first);
    }
    std::uint32_t together = 0;
    auto last = slowest;
    for (const Timer& timer : timers) {
        for (const auto when : timer.came)
            together += when > slowest ? 1 : 0;
        last = std::max(last, timer.came.back());
    }
    measured.tokens_per_second = together / std::max(1e-9, seconds(last - slowest));
    measured.first_seconds = seconds(slowest - started);
    measured.cpu_tokens_per_second = tokens / std::max(1e-9, cpu_seconds() - cpu);
    return measured;
}

std::unique_ptr<molly::engine::Engine> open(
    const fs::path& base, std::uint32_t threads,
    molly::engine::Speculation speculation = molly::engine::Speculation::off,
    bool own_products = true) {
    molly::engine::Limits limits;
    limits.speculation = speculation;
    limits.own_products = own_products;
    if (const char* backends = std::getenv("MOLLY_BENCH_BACKENDS")) limits.backends = backends;
    limits.sequences_max = 16;
    limits.context_tokens_max = 1024;
    limits.threads = threads;
    auto engine = molly::engine::Engine::open(base, limits);
    if (engine) return *std::move(engine);
    fmt::print(stderr, "{}\n", engine.error().message());
    std::exit(1);
}

struct Drafted {
    double ratio = 0;  // tokens per second, over those without speculation
    double accepted = 0;
};

/// The same requests with and without speculation, in turns.
Drafted measure_drafts(const fs::path& model, const Batch& batch, std::uint32_t threads,
                       int rounds) {
    const auto plain = open(model, threads);
    const auto drafting = open(model, threads, molly::engine::Speculation::measured);
    std::vector<double> ratios;
    for (int round = 0; round <= rounds; ++round) {
        const auto seed = static_cast<std::uint32_t>(round + 1);
        const double without = measure(*plain, {}, batch, seed).tokens_per_second;
        const double with = measure(*drafting, {}, batch, seed).tokens_per_second;
        if (round == 0) continue;  // the machine is warm, and something was measured
        ratios.push_back(with / without);
        fmt::print("{} requests, temperature {}: {:.1f} tok/s without, {:.1f} with speculation\n",
                   batch.requests, batch.temperature, without, with);
    }
    const auto state = drafting->speculation();
    fmt::print("{} of {} drafted tokens came\n", state.accepted, state.drafted);
    return {.ratio = median(ratios),
            .accepted = static_cast<double>(state.accepted) /
                        static_cast<double>(std::max<std::uint64_t>(1, state.drafted))};
}

/// Members of the JSON line. Noise repeats itself at temperature 0, as a copied page would: the
/// best that drafts can hope for. It never does at temperature 1, where they can only be in the
/// way.
std::string draft_figures(const fs::path& base, std::uint32_t threads, int rounds,
                          std::uint32_t tokens) {
    const auto one = measure_drafts(base, {.tokens = tokens}, threads, rounds);
    const auto four = measure_drafts(base, {.requests = 4, .tokens = tokens}, threads, rounds);
    const auto noise = measure_drafts(base, {.tokens = tokens, .temperature = 1}, threads, rounds);
    return fmt::format(
        "\"speculation_repeats\":{:.3f},\"speculation_repeats_b4\":{:.3f},"
        "\"speculation_noise\":{:.3f},\"accepted_repeats\":{:.3f}",
        one.ratio, four.ratio, noise.ratio, one.accepted);
}

/// Members of the JSON line: how many times faster our own products are than ggml's, in turns.
std::string product_figures(const fs::path& folder, std::uint32_t threads, int rounds,
                            std::uint32_t tokens) {
    const auto ours = open(folder / "base.gguf", threads);
    const auto ggml = open(folder / "base.gguf", threads, molly::engine::Speculation::off, false);
    const std::vector<Batch> cases = {{.requests = 1, .tokens = tokens},
                                      {.requests = 8, .tokens = tokens},
                                      {.requests = 8, .adapters = 8, .tokens = tokens},
                                      {.requests = 1, .prompt_words = 200, .tokens = 2}};
    std::vector<std::vector<double>> ratios(cases.size());
    for (int round = 0; round <= rounds; ++round) {
        for (std::size_t i = 0; i < cases.size(); ++i) {
            const auto seed = static_cast<std::uint32_t>(round + 1);
            const Measured with = measure(*ours, folder, cases[i], seed);
            const Measured without = measure(*ggml, folder, cases[i], seed);
            if (round == 0) continue;  // the machine is warm
            ratios[i].push_back(i == 3 ? without.first_seconds / with.first_seconds
                                       : with.tokens_per_second / without.tokens_per_second);
        }
    }
    return fmt::format(
        "\"own_products_b1\":{:.3f},\"own_products_b8\":{:.3f},\"own_products_8x8\":{:.3f},"
        "\"own_products_prefill\":{:.3f}",
        median(ratios[0]), median(ratios[1]), median(ratios[2]), median(ratios[3]));
}

}  // namespace

int main(int count, char** words) {
    if (count < 2) {
        fmt::print(stderr, "usage: bench_engine FOLDER [ROUNDS [TOKENS]]\n");
        return 2;
    }
    const fs::path folder = words[1];
    const int rounds = count > 2 ? std::atoi(words[2]) : 3;
    const auto tokens = static_cast<std::uint32_t>(count > 3 ? std::atoi(words[3]) : 64);
    const char* wanted = std::getenv("MOLLY_BENCH_THREADS");
    const auto threads = wanted != nullptr ? static_cast<std::uint32_t>(std::atoi(wanted))
                                           : std::max(1U, std::thread::hardware_concurrency());
    const fs::path base = folder / "base.gguf";
    const auto engine = open(base, threads);
    const auto limit = [&](auto measured) { return std::max(measured(), measured()); };
    double bandwidth = molly::bench::memory_bandwidth(threads);
    double matmul = molly::bench::matmul_speed(threads, 8);
    const std::vector<Batch> cases = {{.requests = 1, .tokens = tokens},
                                      {.requests = 2, .tokens = tokens},
                                      {.requests = 4, .tokens = tokens},
                                      {.requests = 8, .tokens = tokens},
                                      {.requests = 16, .tokens = tokens},
                                      {.requests = 8, .adapters = 8, .tokens = tokens},
                                      {.requests = 1, .prompt_words = 200, .tokens = 2},
                                      {.requests = 3, .tokens = tokens},
                                      {.requests = 5, .tokens = tokens, .every_other = true}};
    std::map<std::size_t, std::vector<Measured>> seen;
    measure(*engine, folder, {.requests = 8, .adapters = 8, .tokens = 4}, 0);  // not counted
    for (int round = 1; round <= rounds; ++round) {
        for (std::size_t i = 0; i < cases.size(); ++i) {
            seen[i].push_back(
                measure(*engine, folder, cases[i], static_cast<std::uint32_t>(round)));
            fmt::print(
                "round {} {} requests, {} adapters: {:.1f} tok/s, last first token {:.3f} s, "
                "{:.1f} tok per cpu second\n",
                round, cases[i].requests, cases[i].adapters, seen[i].back().tokens_per_second,
                seen[i].back().first_seconds, seen[i].back().cpu_tokens_per_second);
        }
    }
    bandwidth = std::max(bandwidth, limit([&] { return molly::bench::memory_bandwidth(threads); }));
    matmul = std::max(matmul, limit([&] { return molly::bench::matmul_speed(threads, 8); }));
    const auto middle = [&](std::size_t which, auto field) {
        std::vector<double> values;
        for (const Measured& one : seen[which])
            values.push_back(one.*field);
        return median(std::move(values));
    };
    const auto speed = [&](std::size_t which) {
        return middle(which, &Measured::tokens_per_second);
    };
    const std::string drafts = draft_figures(base, threads, rounds, tokens) + "," +
                               product_figures(folder, threads, rounds, tokens);
    const molly::engine::Description& model = engine->describe();
    // Every weight is read once for a step; every weight is multiplied once for a token.
    const double bytes = static_cast<double>(model.file_bytes);
    const double operations = 2.0 * static_cast<double>(model.parameters);
    fmt::print("memory {:.1f} GB/s, matmul of 8 rows {:.0f} GFLOP/s, {} threads\n", bandwidth / 1e9,
               matmul / 1e9, threads);
    double load = 0;
    getloadavg(&load, 1);
    fmt::print(
        "{{\"tok_s_b1\":{:.2f},\"tok_s_b2\":{:.2f},\"tok_s_b4\":{:.2f},\"tok_s_b8\":{:.2f},"
        "\"tok_s_b16\":{:.2f},\"tok_s_8x8\":{:.2f},\"kept_8x8\":{:.4f},\"cpu_kept_8x8\":{:.4f},"
        "\"prefill_first_token_s\":{:.4f},\"tok_s_b3\":{:.2f},\"tok_s_3_of_5\":{:.2f},"
        "{},\"fraction_bandwidth_b1\":{:.4f},"
        "\"fraction_matmul_b8\":{:.4f},\"bandwidth_gb_s\":{:.2f},\"matmul_8_gflop_s\":{:.1f},"
        "\"threads\":{},\"load_average\":{:.2f}}}\n",
        speed(0), speed(1), speed(2), speed(3), speed(4), speed(5), speed(5) / speed(3),
        middle(5, &Measured::cpu_tokens_per_second) / middle(3, &Measured::cpu_tokens_per_second),
        middle(6, &Measured::first_seconds), speed(7), speed(8), drafts,
        speed(0) * bytes / bandwidth, speed(3) * operations / matmul, bandwidth / 1e9, matmul / 1e9,
        threads, load);
    return 0;
}
