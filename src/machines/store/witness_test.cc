#include <fstream>

#include <gtest/gtest.h>

#include "store/audit.h"
#include "store/internal/test_store.h"
#include "store/store.h"

namespace molly::store {
namespace {

using testing::append;
using testing::full_trace;
using testing::open_store;
using testing::TemporaryFolder;
using testing::trace;

const std::string hash_of_zero = std::string(32, '\x5a');

Result<KeyChange> rotate(Store& store) {
    return testing::wait_for<Result<KeyChange>>([&] { return store.rotate_key(); });
}

std::string text_of(const std::filesystem::path& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

TEST(HeadCode, IsReadHoweverPeopleWriteIt) {
    const std::string code = head_code(123'456, hash_of_zero);
    EXPECT_EQ(code.size(), 47U) << code;
    const auto head = head_from_code(code);
    ASSERT_TRUE(head.has_value());
    EXPECT_EQ(head->sequence, 123'456U);
    EXPECT_EQ(head->hash, hash_of_zero.substr(0, 18));
    std::string spoken;
    for (char c : code) {
        if (c == '0') c = 'o';
        if (c == '1') c = 'L';
        if (c != '-') spoken += static_cast<char>(std::tolower(c));
    }
    EXPECT_EQ(head_from_code(spoken).value(), *head);
    EXPECT_EQ(head_code(0, hash_of_zero), "");
}

TEST(HeadCode, NoticesAnyOneLetterAndAnySwapOfNeighbours) {
    const std::string code = head_code(77, seal::random_bytes(32));
    for (std::size_t i = 0; i < code.size(); ++i) {
        if (code[i] == '-') continue;
        std::string wrong = code;
        wrong[i] = wrong[i] == '7' ? '8' : '7';
        EXPECT_FALSE(head_from_code(wrong).has_value()) << wrong;
        wrong = code;
        if (i + 1 == code.size() || code[i + 1] == '-' || code[i + 1] == code[i]) continue;
        std::swap(wrong[i], wrong[i + 1]);
        EXPECT_FALSE(head_from_code(wrong).has_value()) << wrong;
    }
    EXPECT_FALSE(head_from_code("").has_value());
    EXPECT_FALSE(head_from_code("UUUUU").has_value());
}

TEST(WitnessFile, KeepsEveryHeadAndForgetsATornLine) {
    TemporaryFolder folder;
    std::filesystem::create_directory(folder.path());
    const std::filesystem::path file = folder.path() / "witness";
    const WitnessedHead head{
        .sequence = 3, .hash = hash_of_zero, .key_id = "k", .signature = std::string(64, 's')};
    WitnessedHead later = head;
    later.sequence = 9;
    ASSERT_TRUE(append_witness(file, head, WallTime()).has_value());
    std::ofstream(file, std::ios::app) << "{\"head\":5,\"ha";  // the medium went away
    EXPECT_EQ(witness_from(text_of(file)).value(), std::vector{head});
    ASSERT_TRUE(append_witness(file, later, WallTime()).has_value());
    EXPECT_EQ(witness_from(text_of(file)).value(), (std::vector{head, later}));
    std::ofstream(file, std::ios::app) << "{}\n";
    EXPECT_EQ(witness_from(text_of(file)).error().code(), ErrorCode::invalid_request);
}

TEST(WitnessFile, TheStoreWritesItsHeadsWhereItIsTold) {
    TemporaryFolder folder;
    TemporaryFolder elsewhere;
    std::filesystem::create_directory(elsewhere.path());
    Options options;
    options.folder = folder.path();
    options.witness_file = elsewhere.path() / "heads.jsonl";
    {
        const auto store = Store::open(options);
        ASSERT_TRUE(append(**store, full_trace("a")).has_value());
        ASSERT_TRUE(append(**store, full_trace("b")).has_value());
    }
    const auto heads = read_witness(options.witness_file.string());
    ASSERT_FALSE(heads->empty());
    EXPECT_EQ(heads->back().sequence, 2U);
    const AuditReport report = verify_log(folder.path(), *heads).value();
    EXPECT_TRUE(report.sound) << report.fault;
    EXPECT_EQ(report.witnessed, heads->size());
}

TEST(WitnessFile, AMediumThatIsAwayStopsNothing) {
    TemporaryFolder folder;
    Options options;
    options.folder = folder.path();
    options.witness_file = "/nowhere/at/all";
    {
        const auto store = Store::open(options);
        ASSERT_TRUE(append(**store, full_trace("a")).has_value());
        ASSERT_TRUE(trace(**store, "a").has_value());
    }
    EXPECT_TRUE(verify_log(folder.path())->sound);
}

TEST(KeyChangeTest, TheNewKeySignsAndTheOldOneIsGone) {
    TemporaryFolder folder;
    const std::filesystem::path file = folder.path() / "signing.key";
    std::string old_text;
    KeyChange change;
    {
        const auto store = open_store(folder.path());
        ASSERT_TRUE(append(*store, full_trace("a")).has_value());
        old_text = text_of(file);
        change = rotate(*store).value();
        ASSERT_TRUE(append(*store, full_trace("b")).has_value());
    }
    EXPECT_EQ(change.sequence, 2U);
    EXPECT_NE(text_of(file), old_text);
    EXPECT_FALSE(std::filesystem::exists(folder.path() / "signing.next.key"));
    EXPECT_EQ(seal::SigningKey::load_or_create(file)->key_id(), change.key_id);
    const AuditReport report = verify_log(folder.path()).value();
    EXPECT_TRUE(report.sound) << report.fault;
    EXPECT_EQ(report.keys, (std::vector{change.retired, change.key_id}));
    ASSERT_TRUE(append(*open_store(folder.path()), full_trace("c")).has_value());
    EXPECT_TRUE(verify_log(folder.path())->sound);
}

TEST(KeyChangeTest, ManyChangesAmongRequestsLeaveASoundLog) {
    TemporaryFolder folder;
    {
        const auto store = open_store(folder.path());
        for (int i = 0; i < 40; ++i) {
            ASSERT_TRUE(append(*store, full_trace("a" + std::to_string(i))).has_value());
            if (i % 10 != 5) continue;
            ASSERT_TRUE(rotate(*store).has_value());
        }
    }
    const AuditReport report = verify_log(folder.path()).value();
    EXPECT_TRUE(report.sound) << report.fault;
    EXPECT_EQ(report.receipts, 44U);
    EXPECT_EQ(report.keys.size(), 5U);
}

TEST(KeyChangeTest, ACrashBeforeTheFilesChangePlacesIsMendedAtTheNextStart) {
    TemporaryFolder folder;
    const std::filesystem::path file = folder.path() / "signing.key";
    const std::filesystem::path next = folder.path() / "signing.next.key";
    {
        const auto store = open_store(folder.path());
        ASSERT_TRUE(append(*store, full_trace("a")).has_value());
        std::filesystem::copy(file, folder.path() / "old");
        ASSERT_TRUE(rotate(*store).has_value());
    }
    std::filesystem::rename(file, next);
    std::filesystem::rename(folder.path() / "old", file);
    ASSERT_TRUE(append(*open_store(folder.path()), full_trace("b")).has_value());
    EXPECT_FALSE(std::filesystem::exists(next));
    EXPECT_TRUE(verify_log(folder.path())->sound);
}

TEST(KeyChangeTest, APreparedKeyThatTheLogNeverNamedWaits) {
    TemporaryFolder folder;
    {
        ASSERT_TRUE(append(*open_store(folder.path()), full_trace("a")).has_value());
    }
    const std::filesystem::path next = folder.path() / "signing.next.key";
    const std::string prepared = seal::SigningKey::load_or_create(next)->key_id();
    const auto store = open_store(folder.path());
    ASSERT_TRUE(append(*store, full_trace("b")).has_value());
    EXPECT_EQ(rotate(*store)->key_id, prepared);
}

TEST(KeyChangeTest, AnotherKeyIsRefusedAfterAChangeToo) {
    TemporaryFolder folder;
    const std::filesystem::path file = folder.path() / "signing.key";
    {
        const auto store = open_store(folder.path());
        std::filesystem::copy(file, folder.path() / "old");
        ASSERT_TRUE(rotate(*store).has_value());
    }
    std::filesystem::rename(folder.path() / "old", file);
    Options options;
    options.folder = folder.path();
    EXPECT_EQ(Store::open(options).error().code(), ErrorCode::conflict);
}

}  // namespace
}  // namespace molly::store
