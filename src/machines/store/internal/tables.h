#pragma once
// Everything that is said to SQLite, statement by statement. One thread at a time.
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "store/audit.h"
#include "store/internal/conversations.h"
#include "store/internal/database.h"
#include "store/internal/fingerprint_index.h"
#include "store/internal/ledger.h"
#include "store/internal/signer.h"
#include "store/store.h"

namespace molly::store::internal {

/// Where the receipt chain stands.
struct ChainState {
    std::uint64_t sequence = 0;
    seal::Hash hash{};
};

/// Costs by (key, UTC day).
using Spending = std::map<std::pair<std::string, std::int64_t>, std::int64_t>;

class Tables {
public:
    /// Opens or makes the database and its tables. Errors: as Database; unsupported, when a newer
    /// Molly wrote it.
    static Result<Tables> open(const std::filesystem::path& file, Durability durability);

    /// The end of the chain, after checking that `signer` signs this log. Errors: conflict (another
    /// key signed it).
    Result<ChainState> chain(Signer& signer);
    /// Stores rows, costs and conversations and signs the last receipt, in one transaction; a row
    /// that changes the key is signed by the old one and makes the successor the signer.
    Result<void> store(const std::vector<Row>& rows, const Conversations& conversations,
                       Signer& signer);
    /// The last signed head, if there is one.
    Result<std::optional<WitnessedHead>> head();

    Result<void> load(Conversations& conversations, std::size_t entries_max);
    Result<Spending> spending();

    Result<std::vector<domain::Trace>> traces(const TraceQuery& query);
    Result<domain::Trace> trace(const std::string& id);
    Result<Receipt> receipt(const std::string& id);

    Result<void> put_response(const std::string& id, const std::string& member,
                              std::int64_t expires, std::string_view sealed);
    Result<std::string> response(const std::string& id, const std::string& member,
                                 std::int64_t now);
    Result<void> delete_response(const std::string& id, const std::string& member);

    Result<void> put_prints(const PrintChange& change);
    Result<void> load(FingerprintIndex& index);
    /// Removes fingerprints last seen before a day, for each class. Gives the rows removed.
    Result<std::uint64_t> expire_prints(const std::array<std::int64_t, 4>& days_before);

    Result<std::vector<KeyRow>> keys();
    Result<void> put_key(const KeyRow& row);
    Result<std::vector<EstimateRow>> estimates();
    Result<void> put_estimates(const std::vector<EstimateRow>& rows);
    /// Errors: conflict.
    Result<void> put_feedback(const std::string& trace_id, double score, WallTime now);

    /// Removes expired traces among the receipts after `after`, a bounded number of them. Gives
    /// the rows removed and where to go on; 0 when there is no more.
    struct Expired {
        std::uint64_t rows = 0;
        std::uint64_t next = 0;
    };
    Result<Expired> expire_traces(std::uint64_t after, const std::array<std::int64_t, 4>& before);
    /// Removes the rest: conversations unseen since, responses, old days of spending.
    Result<std::uint64_t> expire_rest(const std::array<std::int64_t, 4>& days_before,
                                      std::int64_t now);

private:
    Result<void> prepare();
    Result<void> insert(const Row& row);
    Result<void> insert_all(const std::vector<Row>& rows, const Conversations& conversations,
                            const Signer& signer);
    Result<void> put_prints_within(const PrintChange& change);
    Result<void> insert_traces_of(const std::vector<Row>& rows, const Conversations& conversations);
    Result<void> sign(const Row& row, const seal::SigningKey& key);
    Result<void> hand_over(const Row& row, const Signer& signer);

    Database database_;
    Durability durability_ = Durability::process;
    Statement begin_;
    Statement commit_;
    Statement rollback_;
    Statement insert_receipt_;
    Statement insert_trace_;
    Statement insert_head_;
    Statement add_spending_;
    Statement put_conversation_;
};

/// Makes the tables of an empty database. Errors: unsupported (a newer Molly wrote it), corrupt
/// (another program's file).
Result<void> prepare_schema(Database& database);

}  // namespace molly::store::internal
