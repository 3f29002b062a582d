// How much one commit of the store costs, at several numbers of requests in flight.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <fmt/format.h>

#include "base/coroutine.h"
#include "seal/seal.h"
#include "store/store.h"

namespace {

using namespace molly;  // NOLINT(google-build-using-namespace)

double cpu_seconds() {
    timespec time{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// What the pipeline records of one short chat with a remote target.
domain::Trace trace_of(const std::string& id) {
    domain::Trace trace;
    trace.id = id;
    trace.time = system_clock().wall();
    trace.dialect = "openai";
    trace.member = "anna";
    trace.key_id = "key_0123456789abcdef";
    trace.app = "benchmark/1.0";
    trace.model_asked = "auto";
    trace.conversation = "d0b7a0f8c9e14a1bb65c1f0e8b9d2c3a";
    trace.label.origins = {"anna"};
    trace.signals.push_back({"default", domain::Sensitivity::private_, 1});
    trace.capability.prompt_tokens = 20;
    trace.capability.answer_tokens = 64;
    trace.decision.rule = "class-private";
    trace.decision.permitted = {domain::Tier::t0, domain::Tier::t1};
    for (const char* target : {"lan", "local"}) {
        domain::Candidate candidate;
        candidate.target = target;
        candidate.tier = domain::Tier::t1;
        candidate.quality = 0.61234;
        candidate.latency = std::chrono::milliseconds(12);
        candidate.score = 0.593215;
        trace.decision.candidates.push_back(candidate);
    }
    domain::Attempt attempt;
    attempt.target = "lan";
    attempt.tier = domain::Tier::t1;
    attempt.endpoint = "http://127.0.0.1:9000/v1";
    attempt.bytes_sent = 412;
    attempt.bytes_received = 633;
    attempt.usage = {.prompt_tokens = 20,
                     .cached_tokens = 0,
                     .answer_tokens = 12,
                     .reasoning_tokens = 0,
                     .source = domain::Usage::Source::upstream};
    attempt.duration = std::chrono::microseconds(431);
    trace.attempts.push_back(attempt);
    trace.target = "lan";
    trace.model = "fixed";
    trace.usage = attempt.usage;
    trace.duration = std::chrono::microseconds(512);
    trace.finish = domain::FinishReason::stop;
    return trace;
}

Task<void> request(store::Store& store, std::vector<double>& latencies) {
    const auto begin = std::chrono::steady_clock::now();
    domain::Trace trace = trace_of(seal::ordered_token(system_clock().wall()));
    store::Departure departure;
    departure.trace_id = trace.id;
    departure.target = "lan";
    departure.endpoint = "http://127.0.0.1:9000/v1";
    departure.time = trace.time;
    departure.member = trace.member;
    departure.key_id = trace.key_id;
    departure.rule = trace.decision.rule;
    departure.permitted = trace.decision.permitted;
    const auto left = co_await store.depart(std::move(departure));
    const auto kept = co_await store.append(std::move(trace));
    if (!left || !kept) std::abort();
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    latencies.push_back(took.count());
}

struct Measured {
    double per_second = 0;
    double cpu_us = 0;  // of the whole process, per request
    double p50_us = 0;
    double p99_us = 0;
};

Measured measure(store::Store& store, std::size_t in_flight, std::size_t requests) {
    boost::asio::io_context context;
    std::vector<double> latencies;
    latencies.reserve(requests);
    std::atomic<std::size_t> left = requests;
    for (std::size_t i = 0; i < in_flight; ++i) {
        spawn(context.get_executor(), [&]() -> Task<void> {
            for (std::size_t before = left; before > 0; before = left) {
                --left;
                co_await request(store, latencies);
            }
        });
    }
    const double cpu = cpu_seconds();
    const auto begin = std::chrono::steady_clock::now();
    context.run();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    // What waits for the database belongs to the price.
    store::TraceQuery last;
    last.limit = 1;
    context.restart();
    spawn(context.get_executor(), [&]() -> Task<void> { (void)co_await store.traces(last); });
    context.run();
    const double used = cpu_seconds() - cpu;
    std::sort(latencies.begin(), latencies.end());
    const auto count = static_cast<double>(requests);
    return {.per_second = count / took.count(),
            .cpu_us = used * 1e6 / count,
            .p50_us = latencies[requests / 2],
            .p99_us = latencies[requests * 99 / 100]};
}

void run(store::Durability durability, const char* name, std::size_t requests, std::string& json) {
    const auto folder =
        std::filesystem::temp_directory_path() / ("molly-bench-" + seal::random_token(8));
    store::Options options;
    options.folder = folder;
    options.durability = durability;
    {
        const auto store = store::Store::open(options);
        if (!store) std::abort();
        for (const std::size_t in_flight : {1U, 16U, 64U}) {
            const Measured found = measure(**store, in_flight, requests);
            fmt::print(
                "{:8} {:3} in flight: {:8.0f} requests/s, {:6.1f} us CPU each, p50 {:7.1f} "
                "us, p99 {:7.1f} us\n",
                name, in_flight, found.per_second, found.cpu_us, found.p50_us, found.p99_us);
            json += fmt::format(
                ",\"{0}_c{1}_per_second\":{2:.0f},\"{0}_c{1}_cpu_us\":{3:.2f},"
                "\"{0}_c{1}_p99_us\":{4:.1f}",
                name, in_flight, found.per_second, found.cpu_us, found.p99_us);
        }
    }
    std::filesystem::remove_all(folder);
}

}  // namespace

int main(int count, char** arguments) {
    const std::string_view only = count > 1 ? arguments[1] : "";
    std::string json = "{\"benchmark\":\"store\"";
    if (only != "power") run(store::Durability::process, "process", 20'000, json);
    if (only != "process") run(store::Durability::power, "power", 1'000, json);
    fmt::print("{}}}\n", json);
    return 0;
}
