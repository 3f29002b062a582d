#include "store/audit.h"

#include <fstream>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "store/internal/database.h"
#include "store/internal/test_store.h"
#include "store/store.h"

namespace molly::store {
namespace {

using internal::Access;
using internal::Database;
using testing::append;
using testing::full_trace;
using testing::open_store;
using testing::TemporaryFolder;
using testing::trace;

/// A log of nine receipts under three signatures.
class AuditTest : public ::testing::Test {
protected:
    void SetUp() override {
        const auto store = open_store(folder_.path());
        ASSERT_NE(store, nullptr);
        for (int i = 1; i <= 9; ++i) {
            const std::string id = "a" + std::to_string(i);
            ASSERT_TRUE(append(*store, full_trace(id)).has_value());
            if (i % 3 == 0) {  // a read stores what waits, and signs it
                ASSERT_TRUE(trace(*store, id).has_value());
            }
        }
    }

    AuditReport verify(const std::string& witness = {}) {
        std::vector<WitnessedHead> heads;
        if (!witness.empty()) heads = read_witness(witness).value();
        auto report = verify_log(folder_.path(), std::move(heads));
        EXPECT_TRUE(report.has_value()) << (report ? "" : report.error().message());
        return report ? *std::move(report) : AuditReport{};
    }
    void tamper(const std::string& statement) {
        auto database = Database::open(folder_.path() / "molly.db", Access::write);
        ASSERT_TRUE(database.has_value());
        const auto done = database->execute(statement);
        ASSERT_TRUE(done.has_value()) << done.error().message();
    }
    void expect_fault(std::uint64_t at) {
        const AuditReport report = verify();
        EXPECT_FALSE(report.sound);
        EXPECT_EQ(report.fault_at, at) << report.fault;
        EXPECT_FALSE(report.fault.empty());
    }
    std::string exported() {
        const std::filesystem::path file = folder_.path() / "log.jsonl";
        EXPECT_TRUE(export_log(folder_.path(), file).has_value());
        std::ifstream stream(file, std::ios::binary);
        return {std::istreambuf_iterator<char>(stream), {}};
    }
    Result<AuditReport> verify_text(const std::string& text) {
        const std::filesystem::path file = folder_.path() / "changed.jsonl";
        std::ofstream(file, std::ios::binary | std::ios::trunc) << text;
        return verify_log(file);
    }

    TemporaryFolder folder_;
};

TEST_F(AuditTest, AnUntouchedLogIsSound) {
    const AuditReport report = verify();
    EXPECT_TRUE(report.sound) << report.fault;
    EXPECT_EQ(report.receipts, 9U);
    EXPECT_GE(report.signed_heads, 3U);
    EXPECT_EQ(report.unsigned_tail, 0U);
    EXPECT_EQ(report.head.size(), 64U);
    EXPECT_EQ(report.key_id.size(), 16U);
    EXPECT_TRUE(verify(report.head).sound);
}

TEST_F(AuditTest, VerifyingWritesNothing) {
    const auto names = [&] {
        std::set<std::string> found;
        for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
            found.insert(entry.path().filename().string());
        return found;
    };
    const auto before = names();
    EXPECT_TRUE(verify().sound);
    EXPECT_EQ(names(), before);
}

TEST_F(AuditTest, ALiveFolderIsVerifiedBesideItsServer) {
    const auto store = open_store(folder_.path());
    ASSERT_TRUE(append(*store, full_trace("b")).has_value());
    ASSERT_TRUE(trace(*store, "b").has_value());
    const AuditReport report = verify();
    EXPECT_TRUE(report.sound) << report.fault;
    EXPECT_EQ(report.receipts, 10U);
    ASSERT_TRUE(append(*store, full_trace("c")).has_value());
}

TEST_F(AuditTest, AChangedColumnIsFoundWhereItIs) {
    tamper("UPDATE receipts SET body = replace(body, 'answered', 'answerea') WHERE sequence = 4");
    expect_fault(4);
}

TEST_F(AuditTest, AnyChangedByteOfAHashIsFound) {
    for (int byte = 1; byte <= 32; byte += 5) {
        const std::string column = byte % 2 == 0 ? "hash" : "previous";
        const std::string at = std::to_string(byte);
        const std::string keep = "SELECT " + column + " FROM receipts WHERE sequence = 5";
        tamper("CREATE TABLE kept AS " + keep + "; UPDATE receipts SET " + column +
               " = CAST(substr(" + column + ", 1, " + at + " - 1) || CASE substr(" + column + ", " +
               at + ", 1) WHEN x'aa' THEN x'bb' ELSE x'aa' END || substr(" + column + ", " + at +
               " + 1) AS BLOB) WHERE sequence = 5");
        expect_fault(5);
        tamper("UPDATE receipts SET " + column + " = (SELECT " + column +
               " FROM kept) WHERE sequence = 5; DROP TABLE kept");
        EXPECT_TRUE(verify().sound);
    }
}

TEST_F(AuditTest, AnotherIdIsFound) {
    tamper("UPDATE receipts SET id = 'zz' WHERE sequence = 2");
    expect_fault(2);
}

TEST_F(AuditTest, ADroppedReceiptIsFound) {
    tamper("DELETE FROM receipts WHERE sequence = 5");
    expect_fault(5);
}

TEST_F(AuditTest, TwoSwappedReceiptsAreFound) {
    tamper(
        "UPDATE receipts SET sequence = -1 WHERE sequence = 4;"
        "UPDATE receipts SET sequence = 4 WHERE sequence = 5;"
        "UPDATE receipts SET sequence = 5 WHERE sequence = -1");
    expect_fault(4);
}

TEST_F(AuditTest, ARewrittenTailHasNoSignature) {
    const std::string before = verify().head;
    // Somebody without the key drops the last receipts with their signatures and adds his own.
    tamper("DELETE FROM receipts WHERE sequence > 6; DELETE FROM heads WHERE sequence > 6");
    {
        auto database = Database::open(folder_.path() / "molly.db", Access::write);
        auto last = database->prepare("SELECT hash FROM receipts WHERE sequence = 6");
        ASSERT_TRUE(last->next().value());
        const std::string previous = last->text(0);
        last->reset();
        seal::Hash link{};
        std::copy(previous.begin(), previous.end(), link.begin());
        const std::string body = R"({"version":1,"id":"forged"})";
        const seal::Hash hash = seal::sha256_link(link, body);
        const std::string hash_bytes(hash.begin(), hash.end());
        auto insert = database->prepare("INSERT INTO receipts VALUES(7, 'forged', ?, ?, ?)");
        ASSERT_TRUE(
            insert
                ->run(std::string_view(body), internal::Blob{hash_bytes}, internal::Blob{previous})
                .has_value());
    }
    expect_fault(7);
    EXPECT_FALSE(verify(before).sound);
}

TEST_F(AuditTest, AChangedSignatureIsFound) {
    tamper("UPDATE heads SET signature = zeroblob(64) WHERE sequence = 6");
    expect_fault(6);
}

TEST_F(AuditTest, AnotherSignerIsFound) {
    tamper("UPDATE signers SET public_key = zeroblob(32)");
    expect_fault(1);
}

TEST_F(AuditTest, ACutTailShowsThroughItsSignatureAndThroughAWitness) {
    const std::string witnessed = verify().head;
    tamper("DELETE FROM receipts WHERE sequence > 6");
    expect_fault(7);
    tamper("DELETE FROM heads WHERE sequence > 6");
    EXPECT_TRUE(verify().sound);  // a clean cut shows only to who has seen the head
    const AuditReport report = verify(witnessed);
    EXPECT_FALSE(report.sound);
    EXPECT_EQ(report.fault_at, 7U);
    EXPECT_NE(report.fault.find("witnessed"), std::string::npos);
}

TEST_F(AuditTest, AGrownLogStillHoldsAWitnessedHead) {
    const std::string witnessed = verify().head;
    ASSERT_TRUE(append(*open_store(folder_.path()), full_trace("b")).has_value());
    EXPECT_TRUE(verify(witnessed).sound);
    EXPECT_NE(verify().head, witnessed);
}

TEST_F(AuditTest, AnExportedLogVerifiesWithoutTheFolder) {
    const std::string text = exported();
    const auto report = verify_text(text);
    ASSERT_TRUE(report.has_value());
    EXPECT_TRUE(report->sound) << report->fault;
    EXPECT_EQ(report->receipts, 9U);
    EXPECT_EQ(report->head, verify().head);
    EXPECT_EQ(report->signed_heads, verify().signed_heads);
}

TEST_F(AuditTest, EveryFlippedBitOfAnExportIsFound) {
    TemporaryFolder small;
    domain::Trace short_trace;
    short_trace.id = "a1";
    ASSERT_TRUE(append(*open_store(small.path()), short_trace).has_value());
    const std::filesystem::path file = small.path() / "log.jsonl";
    ASSERT_EQ(export_log(small.path(), file).value(), 1U);
    std::ifstream stream(file, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    ASSERT_TRUE(verify_text(text)->sound);
    for (std::size_t i = 0; i < text.size(); ++i) {
        std::string changed = text;
        changed[i] = static_cast<char>(changed[i] ^ (1 << (i % 7)));
        const auto report = verify_text(changed);
        ASSERT_FALSE(report.has_value() && report->sound) << "byte " << i;
    }
}

TEST_F(AuditTest, CutDroppedAndSwappedLinesOfAnExportAreFound) {
    const std::string text = exported();
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);)
        lines.push_back(line + "\n");
    const auto join = [](const std::vector<std::string>& parts) {
        std::string all;
        for (const std::string& part : parts)
            all += part;
        return all;
    };
    EXPECT_FALSE(verify_text(text.substr(0, text.size() - 1))->sound);
    EXPECT_FALSE(verify_text(text.substr(0, text.size() - 40))->sound);
    std::vector<std::string> changed = lines;
    changed.erase(changed.begin() + 3);
    EXPECT_EQ(verify_text(join(changed))->fault_at, 3U);
    changed = lines;
    std::swap(changed[2], changed[3]);
    EXPECT_EQ(verify_text(join(changed))->fault_at, 2U);
    changed = lines;
    changed.erase(changed.begin());
    EXPECT_EQ(verify_text(join(changed)).error().code(), ErrorCode::corrupt);
    EXPECT_EQ(verify_text("").error().code(), ErrorCode::corrupt);
}

TEST_F(AuditTest, WhatIsNoLogIsNotFound) {
    EXPECT_EQ(verify_log(folder_.path() / "absent").error().code(), ErrorCode::not_found);
    TemporaryFolder empty;
    std::filesystem::create_directory(empty.path());
    EXPECT_EQ(verify_log(empty.path()).error().code(), ErrorCode::not_found);
}

}  // namespace
}  // namespace molly::store
