#pragma once
// What the tests of the store share: a folder that goes away, coroutines run to their end, traces.
#include <filesystem>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include "base/coroutine.h"
#include "seal/seal.h"
#include "store/store.h"

namespace molly::store::testing {

class TemporaryFolder {
public:
    TemporaryFolder()
        : path_(std::filesystem::temp_directory_path() /
                ("molly-store-" + seal::random_token(12))) {}
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    TemporaryFolder(TemporaryFolder&&) = delete;
    TemporaryFolder& operator=(TemporaryFolder&&) = delete;
    ~TemporaryFolder() { std::filesystem::remove_all(path_); }
    const std::filesystem::path& path() const noexcept { return path_; }

private:
    std::filesystem::path path_;
};

/// This thread's context. It outlives the stores, whose thread may still be leaving `post` when the
/// coroutine has gone on already.
inline boost::asio::io_context& own_context() {
    static std::mutex mutex;
    static std::list<boost::asio::io_context> contexts;
    thread_local boost::asio::io_context* own = nullptr;
    if (own == nullptr) {
        const std::scoped_lock lock(mutex);
        own = &contexts.emplace_back();
    }
    own->restart();
    return *own;
}

/// Runs what `start` returns to its end on this thread.
template <class T, class Start>
T wait_for(const Start& start) {
    boost::asio::io_context& context = own_context();
    std::optional<T> result;
    spawn(context.get_executor(), [&]() -> Task<void> {
        T value = co_await start();
        result.emplace(std::move(value));
    });
    context.run();
    return *std::move(result);
}

inline Result<void> append(Store& store, const domain::Trace& trace) {
    return wait_for<Result<void>>([&] { return store.append(trace); });
}
inline Result<domain::Trace> trace(Store& store, const std::string& id) {
    return wait_for<Result<domain::Trace>>([&] { return store.trace(id); });
}

inline std::unique_ptr<Store> open_store(const std::filesystem::path& folder) {
    Options options;
    options.folder = folder;
    auto store = Store::open(options);
    EXPECT_TRUE(store.has_value()) << (store ? "" : store.error().message());
    return store ? *std::move(store) : nullptr;
}

/// A trace with something in every member.
inline domain::Trace full_trace(const std::string& id) {
    domain::Trace trace;
    trace.id = id;
    trace.time = std::chrono::floor<std::chrono::microseconds>(std::chrono::system_clock::now());
    trace.dialect = "openai";
    trace.stream = true;
    trace.member = "anna";
    trace.key_id = "key_1";
    trace.app = "curl \"8\"";
    trace.model_asked = "auto";
    trace.conversation = "conversation-" + id;
    trace.label.sensitivity = domain::Sensitivity::standard;
    trace.label.residency = domain::Residency({"EU"});
    trace.label.origins = {"anna", "kb"};
    trace.signals.push_back({"key:office", domain::Sensitivity::standard, 2});
    trace.declassified = true;
    trace.capability.prompt_tokens = 12;
    trace.capability.tools = true;
    trace.rules_hash = "0123456789abcdef";
    trace.decision.rule = "class standard";
    trace.decision.permitted = {domain::Tier::t0, domain::Tier::t1};
    trace.decision.residency = trace.label.residency;
    trace.decision.mode = domain::Mode::fast;
    domain::Candidate candidate;
    candidate.target = "lan";
    candidate.tier = domain::Tier::t1;
    candidate.quality = 0.1;
    candidate.cost = {1'500};
    candidate.latency = std::chrono::milliseconds(20);
    candidate.score = 0.3;
    trace.decision.candidates.push_back(candidate);
    candidate.excluded_by = "health";
    trace.decision.candidates.push_back(candidate);
    domain::Attempt attempt;
    attempt.target = "far";
    attempt.tier = domain::Tier::t1;
    attempt.endpoint = "https://far.example:443/v1";
    attempt.failed = ErrorCode::unavailable;
    attempt.failure = "connect timed out";
    attempt.bytes_sent = 10;
    attempt.duration = std::chrono::microseconds(77);
    trace.attempts.push_back(attempt);
    attempt.failed.reset();
    attempt.failure.clear();
    attempt.peer_authenticated = true;
    attempt.target = "lan";
    attempt.bytes_received = 99;
    attempt.usage = {.prompt_tokens = 12,
                     .cached_tokens = 3,
                     .answer_tokens = 5,
                     .reasoning_tokens = 1,
                     .source = domain::Usage::Source::upstream};
    attempt.cost = {1'000'000};
    trace.attempts.push_back(attempt);
    trace.target = "lan";
    trace.adapter = "law";
    trace.model = "llama";
    trace.model_hash = "abc";
    trace.usage = attempt.usage;
    trace.cost = {1'000'000};
    trace.first_token = std::chrono::microseconds(300);
    trace.duration = std::chrono::microseconds(900);
    trace.finish = domain::FinishReason::length;
    return trace;
}

}  // namespace molly::store::testing
