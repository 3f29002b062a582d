#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "store/audit.h"
#include "store/internal/journal.h"
#include "store/internal/test_store.h"
#include "store/store.h"

namespace molly::store {
namespace {

using testing::append;
using testing::full_trace;
using testing::open_store;
using testing::TemporaryFolder;
using testing::trace;
using testing::wait_for;

/// The pipe of a killed child closes a moment before its lock does.
std::unique_ptr<Store> open_after_death(const std::filesystem::path& folder) {
    Options options;
    options.folder = folder;
    for (int i = 0; i < 1000; ++i) {
        auto store = Store::open(options);
        if (store) return *std::move(store);
        if (store.error().code() != ErrorCode::conflict) break;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return open_store(folder);
}

/// Appends until it is killed; tells the pipe each number once it is acknowledged.
[[noreturn]] void append_for_ever(const std::filesystem::path& folder, int pipe) {
    const auto store = open_after_death(folder);
    std::vector<std::thread> threads;
    for (std::uint32_t t = 0; t < 3; ++t) {
        threads.emplace_back([&, t] {
            for (std::uint32_t i = t;; i += 3) {
                Departure leaving;
                leaving.trace_id = "n" + std::to_string(i);
                leaving.target = "lan";
                (void)wait_for<Result<void>>([&] { return store->depart(leaving); });
                if (!append(*store, full_trace(leaving.trace_id))) ::_exit(1);
                if (::write(pipe, &i, sizeof i) != sizeof i) ::_exit(2);
            }
        });
    }
    threads.front().join();
    ::_exit(3);
}

std::vector<std::uint32_t> kill_under_load(const std::filesystem::path& folder,
                                           std::size_t appends) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) append_for_ever(folder, ends[1]);
    ::close(ends[1]);
    std::vector<std::uint32_t> acknowledged;
    std::uint32_t number = 0;
    while (::read(ends[0], &number, sizeof number) == sizeof number) {
        acknowledged.push_back(number);
        if (acknowledged.size() == appends) ::kill(child, SIGKILL);
    }
    ::close(ends[0]);
    return acknowledged;
}

TEST(Crash, EveryAcknowledgedTraceSurvivesKill9) {
    std::signal(SIGCHLD, SIG_IGN);  // nobody waits for the children
    TemporaryFolder folder;
    std::vector<std::uint32_t> acknowledged = kill_under_load(folder.path(), 2000);
    for (const std::size_t appends : {1U, 40U, 700U}) {
        const auto more = kill_under_load(folder.path(), appends);
        EXPECT_GE(more.size(), appends);
    }
    const auto store = open_after_death(folder.path());
    ASSERT_NE(store, nullptr);
    for (const std::uint32_t number : acknowledged) {
        const auto found = trace(*store, "n" + std::to_string(number));
        ASSERT_TRUE(found.has_value()) << number;
    }
    const auto report = verify_log(folder.path());
    ASSERT_TRUE(report.has_value());
    EXPECT_TRUE(report->sound) << report->fault;
    EXPECT_GE(report->receipts, 2741U);
}

TEST(Journal, ATornOrForeignFrameEndsTheFile) {
    TemporaryFolder folder;
    std::filesystem::create_directory(folder.path());
    const seal::Hash key = seal::sha256("key");
    using internal::Frame;
    using internal::FrameKind;
    const Frame frame(FrameKind::trace, "body", "text", key);
    {
        auto journal = internal::Journal::open(folder.path(), key);
        ASSERT_TRUE(journal.has_value());
        ASSERT_TRUE(journal->start(7).has_value());
        ASSERT_TRUE(journal->add(frame).has_value());
        ASSERT_TRUE(journal->add(frame).has_value());
    }
    auto files = internal::read_journal(folder.path(), key);
    ASSERT_EQ(files->size(), 1U);
    EXPECT_EQ(files->at(0).base, 7U);
    EXPECT_EQ(files->at(0).frames.size(), 2U);
    EXPECT_EQ(files->at(0).frames[1].first(), "body");
    EXPECT_EQ(files->at(0).frames[1].second(), "text");
    EXPECT_FALSE(files->at(0).torn);
    const Frame start(FrameKind::start, "1 7", {}, key);
    const auto end = start.bytes().size() + 2 * frame.bytes().size();
    std::filesystem::resize_file(folder.path() / "journal.0", end - 1);
    files = internal::read_journal(folder.path(), key);
    EXPECT_EQ(files->at(0).frames.size(), 1U);
    EXPECT_TRUE(files->at(0).torn);
    files = internal::read_journal(folder.path(), seal::sha256("another"));
    EXPECT_TRUE(files->at(0).frames.empty());
    EXPECT_TRUE(files->at(0).torn);
    for (std::size_t i = 0; i < frame.bytes().size(); ++i) {
        std::string changed = frame.bytes();
        changed[i] = static_cast<char>(changed[i] ^ 1);
        EXPECT_TRUE(Frame::parse(changed, key).empty()) << i;
    }
}

/// Files of this process may grow to so many bytes while it lives.
class SizeLimit {
public:
    explicit SizeLimit(rlim_t bytes) {
        std::signal(SIGXFSZ, SIG_IGN);
        ::getrlimit(RLIMIT_FSIZE, &before_);
        const rlimit limit{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
        ::setrlimit(RLIMIT_FSIZE, &limit);
    }
    SizeLimit(const SizeLimit&) = delete;
    SizeLimit& operator=(const SizeLimit&) = delete;
    SizeLimit(SizeLimit&&) = delete;
    SizeLimit& operator=(SizeLimit&&) = delete;
    ~SizeLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }

private:
    rlimit before_{};
};

TEST(Journal, AFailedAppendLeavesNothingBehind) {
    TemporaryFolder folder;
    std::filesystem::create_directory(folder.path());
    const seal::Hash key = seal::sha256("key");
    using internal::Frame;
    const Frame frame(internal::FrameKind::trace, std::string(1000, 'x'), {}, key);
    auto journal = internal::Journal::open(folder.path(), key);
    ASSERT_TRUE(journal->start(1).has_value());
    std::size_t added = 0;
    {
        const SizeLimit limit(std::filesystem::file_size(folder.path() / "journal.0"));
        while (added < 100'000 && journal->add(frame))
            ++added;
        EXPECT_FALSE(journal->add(frame).has_value());
    }
    EXPECT_EQ(internal::read_journal(folder.path(), key)->at(0).frames.size(), added);
    ASSERT_TRUE(journal->add(frame).has_value());
    const auto files = internal::read_journal(folder.path(), key);
    EXPECT_EQ(files->at(0).frames.size(), added + 1);
    EXPECT_FALSE(files->at(0).torn);
}

TEST(Crash, ADiskThatHasNoRoomFailsTheRequestAndLosesNothing) {
    TemporaryFolder folder;
    std::size_t kept = 0;
    {
        const auto store = open_store(folder.path());
        for (; kept < 20; ++kept)
            ASSERT_TRUE(append(*store, full_trace(std::to_string(kept))).has_value());
        ASSERT_TRUE(trace(*store, "1").has_value());
        {
            const SizeLimit limit(std::filesystem::file_size(folder.path() / "molly.db-wal"));
            std::size_t failed = 0;
            for (std::size_t i = 0; i < 500 && failed == 0; ++i) {
                const bool done = append(*store, full_trace(std::to_string(kept))).has_value();
                done ? ++kept : ++failed;
            }
            EXPECT_EQ(failed, 1U);
        }
        EXPECT_TRUE(append(*store, full_trace("after")).has_value());
        for (std::size_t i = 0; i < kept; ++i)
            EXPECT_TRUE(trace(*store, std::to_string(i)).has_value()) << i;
        EXPECT_TRUE(trace(*store, "after").has_value());
    }
    const auto report = verify_log(folder.path());
    EXPECT_TRUE(report->sound) << report->fault;
    EXPECT_EQ(report->receipts, kept + 1);
}

TEST(Journal, RotationKeepsBothFilesUntilTheOldOneIsRetired) {
    TemporaryFolder folder;
    std::filesystem::create_directory(folder.path());
    const seal::Hash key = seal::sha256("key");
    using internal::Frame;
    using internal::FrameKind;
    const Frame one(FrameKind::trace, "1", {}, key);
    const Frame open(FrameKind::departure, "2", {}, key);
    auto journal = internal::Journal::open(folder.path(), key);
    ASSERT_TRUE(journal->start(1).has_value());
    ASSERT_TRUE(journal->add(one).has_value());
    ASSERT_TRUE(journal->rotate(2, {&open}).has_value());
    auto files = internal::read_journal(folder.path(), key);
    ASSERT_EQ(files->size(), 2U);
    EXPECT_EQ(files->at(0).base, 1U);
    EXPECT_EQ(files->at(1).base, 2U);
    EXPECT_EQ(files->at(1).frames.size(), 1U);
    journal->retire();
    files = internal::read_journal(folder.path(), key);
    ASSERT_EQ(files->size(), 1U);
    EXPECT_EQ(files->at(0).base, 2U);
}

}  // namespace
}  // namespace molly::store
