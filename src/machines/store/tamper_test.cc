// Every way of tampering with a log, each found, each at the right receipt.
#include <algorithm>
#include <fstream>

#include <gtest/gtest.h>

#include "store/audit.h"
#include "store/internal/chain_check.h"
#include "store/internal/database.h"
#include "store/internal/log_text.h"
#include "store/internal/receipt_text.h"
#include "store/internal/test_store.h"
#include "store/store.h"

namespace molly::store {
namespace {

using internal::Access;
using internal::Database;
using testing::append;
using testing::open_store;
using testing::TemporaryFolder;
using testing::trace;

domain::Trace small_trace(const std::string& id) {
    domain::Trace trace;
    trace.id = id;
    trace.time = WallTime(std::chrono::hours(500'000));
    trace.target = "local";
    return trace;
}

/// One line of an exported log, and the receipt that it belongs to; 0: the first signer.
struct Line {
    std::string text;  ///< with its end
    std::uint64_t receipt = 0;
    bool head = false;
};

/// Thirty receipts, a signature after every third, another key from number 14 on.
class TamperTest : public ::testing::Test {
protected:
    static constexpr std::uint64_t receipts = 30;
    static constexpr std::uint64_t change_at = 13;

    static void SetUpTestSuite() {
        folder_ = std::make_unique<TemporaryFolder>();
        const auto store = open_store(folder_->path());
        for (std::uint64_t i = 1; i <= receipts; ++i) {
            if (i == change_at) {
                const auto change =
                    testing::wait_for<Result<KeyChange>>([&] { return store->rotate_key(); });
                ASSERT_EQ(change.value().sequence, change_at);
                continue;
            }
            const std::string id = "a" + std::to_string(i);
            ASSERT_TRUE(append(*store, small_trace(id)).has_value());
            if (i % 3 == 0) {
                ASSERT_TRUE(trace(*store, id).has_value());  // a read stores what waits
            }
        }
    }
    static void TearDownTestSuite() { folder_.reset(); }

    void SetUp() override {
        const std::filesystem::path file = folder_->path() / "log.jsonl";
        ASSERT_EQ(export_log(folder_->path(), file).value(), receipts);
        std::ifstream stream(file, std::ios::binary);
        std::uint64_t receipt = 0;
        for (std::string text; std::getline(stream, text);) {
            const bool head = text.starts_with("{\"head\":");
            if (text.starts_with("{\"receipt\":")) ++receipt;
            lines_.push_back({text + "\n", receipt, head});
        }
        ASSERT_TRUE(check(lines_).sound);
    }

    static std::string join(const std::vector<Line>& lines) {
        std::string all;
        for (const Line& line : lines)
            all += line.text;
        return all;
    }
    static AuditReport check(const std::vector<Line>& lines,
                             std::vector<WitnessedHead> witnessed = {}) {
        auto report = verify_text(join(lines), std::move(witnessed));
        EXPECT_TRUE(report.has_value());
        return report ? *std::move(report) : AuditReport{};
    }
    static AuditReport check_folder(const std::filesystem::path& folder) {
        auto report = verify_log(folder);
        EXPECT_TRUE(report.has_value());
        return report ? *std::move(report) : AuditReport{};
    }
    std::size_t index_of(std::uint64_t receipt, bool head) const {
        const auto found = std::find_if(lines_.begin(), lines_.end(), [&](const Line& line) {
            return line.receipt == receipt && line.head == head;
        });
        return static_cast<std::size_t>(found - lines_.begin());
    }
    WitnessedHead head_of(std::uint64_t receipt) const {
        std::vector<Line> cut(lines_.begin(),
                              lines_.begin() + std::ptrdiff_t(index_of(receipt, true)) + 1);
        const AuditReport report = check(cut);
        return {.sequence = receipt,
                .hash = seal::from_hex(report.head).value(),
                .key_id = report.keys.back(),
                .signature = seal::from_hex(report.signature).value()};
    }

    static std::unique_ptr<TemporaryFolder> folder_;
    std::vector<Line> lines_;
};

std::unique_ptr<TemporaryFolder> TamperTest::folder_;

TEST_F(TamperTest, EveryFlippedBitOfSomeLinesAndOneOfEveryByteOfTheOthersIsFoundInItsReceipt) {
    for (std::size_t i = 0; i < lines_.size(); ++i) {
        const std::uint64_t own = lines_[i].receipt;
        const bool whole = own == 4 || own == change_at || own == receipts;
        // The line of the signer is no receipt; what it is for begins with the first.
        const std::uint64_t expected = std::max<std::uint64_t>(own, 1);
        for (std::size_t at = 0; at < lines_[i].text.size(); at += whole ? 1 : 7) {
            std::vector<Line> changed = lines_;
            changed[i].text[at] = static_cast<char>(changed[i].text[at] ^ (1 << (at % 8)));
            const auto report = verify_text(join(changed));
            if (!report) {  // not even a log any more
                ASSERT_EQ(i, 0U);
                continue;
            }
            ASSERT_FALSE(report->sound) << "line " << i << " byte " << at;
            ASSERT_EQ(report->fault_at, expected)
                << "line " << i << " byte " << at << ": " << report->fault;
            ASSERT_NE(report->damage, Damage::none);
        }
    }
}

TEST_F(TamperTest, EveryDroppedReceiptIsMissed) {
    for (std::uint64_t receipt = 1; receipt <= receipts; ++receipt) {
        std::vector<Line> changed = lines_;
        changed.erase(changed.begin() + std::ptrdiff_t(index_of(receipt, false)));
        const AuditReport report = check(changed);
        EXPECT_FALSE(report.sound) << receipt;
        EXPECT_EQ(report.fault_at, receipt) << report.fault;
        EXPECT_EQ(report.damage, receipt == receipts ? Damage::truncated : Damage::missing);
    }
}

TEST_F(TamperTest, SwappedNeighboursAreReordered) {
    for (std::size_t i = 1; i + 1 < lines_.size(); ++i) {
        std::vector<Line> changed = lines_;
        std::swap(changed[i], changed[i + 1]);
        const AuditReport report = check(changed);
        EXPECT_FALSE(report.sound) << "line " << i;
        EXPECT_EQ(report.fault_at, lines_[i].receipt) << report.fault;
        EXPECT_EQ(report.damage, Damage::reordered) << report.fault;
    }
}

TEST_F(TamperTest, ACutAfterAnyLineIsFoundAtOnceOrByTheWitness) {
    const std::vector<WitnessedHead> witness{head_of(receipts)};
    std::uint64_t signed_to = 0;
    for (std::size_t kept = 1; kept < lines_.size(); ++kept) {
        const std::vector<Line> cut(lines_.begin(), lines_.begin() + std::ptrdiff_t(kept));
        const Line& last = cut.back();
        if (last.head) signed_to = last.receipt;
        const AuditReport report = check(cut);
        const bool clean = last.receipt == signed_to;
        EXPECT_EQ(report.sound, clean) << "after line " << kept;
        if (!clean) {
            EXPECT_EQ(report.fault_at, signed_to + 1) << report.fault;
        }
        const AuditReport seen = check(cut, witness);
        EXPECT_FALSE(seen.sound) << "after line " << kept;
        if (clean) {
            EXPECT_EQ(seen.fault_at, last.receipt + 1);
            EXPECT_EQ(seen.damage, Damage::truncated);
        }
    }
}

TEST_F(TamperTest, ACutWithinALineIsFoundInItsReceipt) {
    const std::string text = join(lines_);
    std::size_t end = lines_.front().text.size();
    for (std::size_t i = 1; i < lines_.size(); ++i) {
        const AuditReport report = *verify_text(std::string_view(text).substr(0, end + 20));
        EXPECT_EQ(report.fault_at, lines_[i].receipt) << report.fault;
        EXPECT_EQ(report.damage, Damage::truncated);
        end += lines_[i].text.size();
    }
}

TEST_F(TamperTest, ASignatureByAnotherKeyIsForeign) {
    TemporaryFolder other;
    std::filesystem::create_directory(other.path());
    const auto key = seal::SigningKey::load_or_create(other.path() / "k");
    const std::size_t at = index_of(6, true);
    const WitnessedHead head = head_of(6);
    seal::Hash hash{};
    std::copy(head.hash.begin(), head.hash.end(), hash.begin());
    internal::Head forged{6, head.key_id, key->sign(internal::head_text(6, hash))};
    std::vector<Line> changed = lines_;
    changed[at].text = internal::line_of(forged) + "\n";
    EXPECT_EQ(check(changed).damage, Damage::foreign_signature);
    EXPECT_EQ(check(changed).fault_at, 6U);
    forged.key_id = key->key_id();
    changed[at].text = internal::line_of(forged) + "\n";
    EXPECT_EQ(check(changed).damage, Damage::unknown_key);
    EXPECT_EQ(check(changed).fault_at, 6U);
}

TEST_F(TamperTest, ARetiredKeySignsNoMore) {
    std::vector<Line> changed = lines_;
    const std::size_t at = index_of(15, true);
    const std::string retired = head_of(6).key_id;
    const std::string now = head_of(15).key_id;
    EXPECT_NE(retired, now);
    changed[at].text.replace(changed[at].text.find(now), now.size(), retired);
    EXPECT_EQ(check(changed).damage, Damage::unknown_key);
    EXPECT_EQ(check(changed).fault_at, 15U);
}

TEST_F(TamperTest, AChangeOfKeysNeedsTheSignatureOfTheOldOne) {
    std::vector<Line> changed = lines_;
    changed.erase(changed.begin() + std::ptrdiff_t(index_of(change_at, true)));
    const AuditReport report = check(changed);
    EXPECT_FALSE(report.sound);
    EXPECT_EQ(report.fault_at, change_at) << report.fault;
    EXPECT_EQ(report.damage, Damage::missing);
}

TEST_F(TamperTest, AnySoundLogNamesBothKeys) {
    const AuditReport report = check(lines_);
    EXPECT_EQ(report.keys.size(), 2U);
    EXPECT_EQ(report.keys.back(), report.key_id);
}

TEST_F(TamperTest, FlippedBytesOfTheDatabaseAreFoundInTheirReceipt) {
    TemporaryFolder copy;
    std::filesystem::copy(folder_->path(), copy.path());
    auto database = Database::open(copy.path() / "molly.db", Access::write);
    ASSERT_TRUE(database.has_value());
    const auto flip = [&](const std::string& table, const std::string& column,
                          std::uint64_t sequence) {
        const std::string where = " WHERE sequence = " + std::to_string(sequence);
        auto read = database->prepare("SELECT " + column + " FROM " + table + where);
        ASSERT_TRUE(read->next().value());
        const std::string before = read->text(0);
        read->reset();
        const bool text = column == "id" || column == "body" || column == "key_id";
        const std::string write = "UPDATE " + table + " SET " + column + " = CAST(?1 AS " +
                                  (text ? "TEXT" : "BLOB") + ")" + where;
        auto update = database->prepare(write);
        for (std::size_t at = 0; at < before.size(); at += text ? 5 : 3) {
            std::string changed = before;
            changed[at] = static_cast<char>(changed[at] ^ (1 << (at % 7)));
            ASSERT_TRUE(update->run(internal::Blob{changed}).has_value());
            const AuditReport report = check_folder(copy.path());
            ASSERT_FALSE(report.sound) << table << "." << column << " " << sequence << " " << at;
            ASSERT_EQ(report.fault_at, sequence) << column << " " << at << ": " << report.fault;
        }
        ASSERT_TRUE(update->run(internal::Blob{before}).has_value());
    };
    for (const std::uint64_t sequence : {std::uint64_t{1}, std::uint64_t{7}, change_at, receipts}) {
        for (const std::string column : {"id", "body", "hash", "previous"})
            flip("receipts", column, sequence);
    }
    for (const std::uint64_t sequence : {std::uint64_t{6}, change_at, receipts}) {
        flip("heads", "key_id", sequence);
        flip("heads", "signature", sequence);
    }
    EXPECT_TRUE(check_folder(copy.path()).sound);
}

TEST_F(TamperTest, RowsOfTheDatabaseThatAreGoneOrSwappedAreFound) {
    const std::string move = "UPDATE receipts SET sequence = ";
    const auto damaged = [&](const std::string& statements) {
        TemporaryFolder copy;
        std::filesystem::copy(folder_->path(), copy.path());
        auto database = Database::open(copy.path() / "molly.db", Access::write);
        EXPECT_TRUE(database->execute(statements).has_value());
        return check_folder(copy.path());
    };
    for (std::uint64_t n = 1; n < receipts; ++n) {
        const std::string number = std::to_string(n);
        const std::string next = std::to_string(n + 1);
        const AuditReport gone = damaged("DELETE FROM receipts WHERE sequence = " + number);
        EXPECT_EQ(gone.fault_at, n);
        EXPECT_EQ(gone.damage, Damage::missing) << gone.fault;
        const AuditReport swapped =
            damaged(move + "-1 WHERE sequence = " + number + ";" + move + number +
                    " WHERE sequence = " + next + ";" + move + next + " WHERE sequence = -1");
        EXPECT_EQ(swapped.fault_at, n);
        EXPECT_EQ(swapped.damage, Damage::reordered) << swapped.fault;
        const AuditReport cut = damaged("DELETE FROM receipts WHERE sequence > " + number);
        EXPECT_EQ(cut.fault_at, n + 1);
        EXPECT_EQ(cut.damage, Damage::truncated) << cut.fault;
    }
    EXPECT_EQ(damaged("UPDATE signers SET since = 9 WHERE since > 1").damage, Damage::unknown_key);
}

TEST_F(TamperTest, ALogRewrittenWithItsOwnKeyContradictsTheWitness) {
    TemporaryFolder copy;
    std::filesystem::copy(folder_->path(), copy.path());
    const std::vector<WitnessedHead> witness{head_of(15), head_of(24)};
    {
        auto database = Database::open(copy.path() / "molly.db", Access::write);
        ASSERT_TRUE(database
                        ->execute("DELETE FROM receipts WHERE sequence > 21; DELETE FROM traces "
                                  "WHERE sequence > 21; DELETE FROM heads WHERE sequence > 21")
                        .has_value());
    }
    const auto store = open_store(copy.path());
    for (int i = 0; i < 9; ++i)
        ASSERT_TRUE(append(*store, small_trace("b" + std::to_string(i))).has_value());
    ASSERT_TRUE(trace(*store, "b8").has_value());
    EXPECT_TRUE(check_folder(copy.path()).sound);
    const AuditReport report = verify_log(copy.path(), witness).value();
    EXPECT_EQ(report.damage, Damage::rewritten) << report.fault;
    EXPECT_EQ(report.fault_at, 24U);
    EXPECT_EQ(report.witnessed, 1U);
}

TEST_F(TamperTest, AChangedWitnessIsToldFromAChangedLog) {
    WitnessedHead witness = head_of(15);
    witness.hash[3] = static_cast<char>(witness.hash[3] ^ 1);
    EXPECT_EQ(check(lines_, {witness}).damage, Damage::witness_changed);
}

}  // namespace
}  // namespace molly::store
