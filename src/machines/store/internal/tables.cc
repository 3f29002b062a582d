#include "store/internal/tables.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "store/internal/receipt_text.h"
#include "store/trace_text.h"

namespace molly::store::internal {
namespace {

constexpr std::uint32_t traces_max = 10'000;  // of one query

std::string_view view_of(const seal::Hash& hash) {
    return {reinterpret_cast<const char*>(hash.data()), hash.size()};
}

std::int64_t number_of(std::uint64_t sequence) {
    return static_cast<std::int64_t>(sequence);
}

std::string joined_conditions(const TraceQuery& query) {
    std::string where;
    const auto add = [&](bool wanted, std::string_view condition) {
        if (!wanted) return;
        where += where.empty() ? " WHERE " : " AND ";
        where += condition;
    };
    add(!query.member.empty(), "member = ?1");
    add(!query.target.empty(), "target = ?2");
    add(!query.outcome.empty(), "outcome = ?3");
    add(query.before.has_value(), "time < ?4");
    return where;
}

std::unexpected<Error> no_trace(const std::string& id) {
    return fail(Error(ErrorCode::not_found,
                      fmt::format("there is no trace {}; it never was, or its time is over", id))
                    .italian(fmt::format("la traccia {} non esiste, o è scaduta", id)));
}

std::unexpected<Error> no_response() {
    return fail(Error(ErrorCode::not_found,
                      "there is no such stored response; send the whole conversation instead")
                    .italian("nessuna risposta salvata con questo id; inviare l'intera "
                             "conversazione"));
}

}  // namespace

Result<Tables> Tables::open(const std::filesystem::path& file, Durability durability) {
    Tables tables;
    tables.durability_ = durability;
    TRY(tables.database_, Database::open(file, Access::write));
    // The checkpoint runs inside a commit of this connection: its thread is not on the request
    // path.
    TRY_DO(tables.database_.execute(fmt::format(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous={}; PRAGMA wal_autocheckpoint=4096;"
        "PRAGMA journal_size_limit=33554432; PRAGMA cache_size=-32768;"
        "PRAGMA temp_store=MEMORY; PRAGMA trusted_schema=OFF;",
        durability == Durability::power ? "FULL" : "NORMAL")));
    TRY_DO(prepare_schema(tables.database_));
    TRY_DO(tables.prepare());
    return tables;
}

Result<void> Tables::prepare() {
    TRY(begin_, database_.prepare("BEGIN IMMEDIATE"));
    TRY(commit_, database_.prepare("COMMIT"));
    TRY(rollback_, database_.prepare("ROLLBACK"));
    TRY(insert_receipt_, database_.prepare("INSERT INTO receipts VALUES(?, ?, ?, ?, ?)"));
    TRY(insert_trace_, database_.prepare("INSERT INTO traces VALUES(?, ?, ?, ?, ?, ?, ?)"));
    TRY(insert_head_, database_.prepare("INSERT OR REPLACE INTO heads VALUES(?, ?, ?)"));
    TRY(add_spending_, database_.prepare("INSERT INTO spending VALUES(?, ?, ?) ON CONFLICT DO "
                                         "UPDATE SET nano = nano + excluded.nano"));
    TRY(put_conversation_,
        database_.prepare("INSERT OR REPLACE INTO conversations VALUES(?, ?, ?, ?)"));
    return {};
}

Result<ChainState> Tables::chain(Signer& signer) {
    TRY(Statement signers,
        database_.prepare("SELECT key_id, public_key FROM signers ORDER BY since"));
    TRY(const bool signed_before, signers.next());
    std::string first = signer.key().public_key();
    if (!signed_before) {
        TRY(Statement insert, database_.prepare("INSERT INTO signers VALUES(?, ?, 1)"));
        TRY_DO(insert.run(signer.key().key_id(), Blob{first}));
    } else {
        first = signers.text(1);
        std::string last;
        for (bool more = true; more;) {
            last = signers.text(0);
            TRY(more, signers.next());
        }
        TRY_DO(signer.settle(last));
    }
    ChainState state{.sequence = 0, .hash = genesis(first)};
    TRY(Statement last, database_.prepare("SELECT sequence, hash FROM receipts ORDER BY sequence "
                                          "DESC LIMIT 1"));
    TRY(const bool found, last.next());
    if (!found) return state;
    state.sequence = static_cast<std::uint64_t>(last.integer(0));
    const std::string_view hash = last.bytes(1);
    if (hash.size() == state.hash.size()) std::copy(hash.begin(), hash.end(), state.hash.begin());
    return state;
}

Result<void> Tables::store(const std::vector<Row>& rows, const Conversations& conversations,
                           Signer& signer) {
    if (rows.empty()) return {};
    const bool hands_over =
        std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.changes_key(); });
    // The old key is destroyed when this is over, so a power cut may not undo it.
    if (hands_over) TRY_DO(database_.execute("PRAGMA synchronous=FULL"));
    TRY_DO(begin_.run());
    auto stored = insert_all(rows, conversations, signer);
    if (stored) stored = commit_.run();
    if (!stored) (void)rollback_.run();
    if (!hands_over) return stored;
    if (stored) signer.advance();
    (void)database_.execute(
        fmt::format("PRAGMA synchronous={}", durability_ == Durability::power ? "FULL" : "NORMAL"));
    return stored;
}

Result<void> Tables::insert_all(const std::vector<Row>& rows, const Conversations& conversations,
                                const Signer& signer) {
    const seal::SigningKey* key = &signer.key();
    for (const Row& row : rows) {
        TRY_DO(insert(row));
        if (!row.changes_key()) continue;
        TRY_DO(sign(row, *key));
        TRY_DO(hand_over(row, signer));
        key = signer.successor();
    }
    TRY_DO(insert_traces_of(rows, conversations));
    return rows.back().changes_key() ? Result<void>() : sign(rows.back(), *key);
}

Result<void> Tables::insert_traces_of(const std::vector<Row>& rows,
                                      const Conversations& conversations) {
    Spending costs;
    std::map<std::string_view, std::int64_t> seen;
    for (const Row& row : rows) {
        const std::int64_t day = day_of(time_of(row.time));
        if (row.cost.nano != 0) costs[{row.key_id, day}] += row.cost.nano;
        if (!row.conversation.empty()) seen[row.conversation] = day;
    }
    for (const auto& [where, nano] : costs)
        TRY_DO(add_spending_.run(std::string_view(where.first), where.second, nano));
    for (const auto& [id, day] : seen) {
        const auto label = conversations.find(std::string(id));
        if (!label) continue;
        const std::string text = to_text(*label);
        TRY_DO(put_conversation_.run(id, static_cast<std::int64_t>(label->sensitivity),
                                     std::string_view(text), day));
    }
    return {};
}

Result<void> Tables::sign(const Row& row, const seal::SigningKey& key) {
    const std::string signature = key.sign(head_text(row.sequence, row.hash));
    const std::string signer = key.key_id();
    return insert_head_.run(number_of(row.sequence), std::string_view(signer), Blob{signature});
}

Result<void> Tables::hand_over(const Row& row, const Signer& signer) {
    const auto change = key_change_from(row.frame.first());
    const bool prepared =
        change && signer.successor() != nullptr && signer.successor()->key_id() == change->to;
    if (!prepared) return fail(ErrorCode::corrupt, "the log names a key that is not here");
    TRY(Statement insert, database_.prepare("INSERT INTO signers VALUES(?, ?, ?)"));
    return insert.run(std::string_view(change->to), Blob{change->public_key},
                      number_of(row.sequence + 1));
}

Result<std::optional<WitnessedHead>> Tables::head() {
    TRY(Statement row,
        database_.prepare("SELECT heads.sequence, hash, key_id, signature FROM heads "
                          "JOIN receipts USING(sequence) ORDER BY heads.sequence "
                          "DESC LIMIT 1"));
    TRY(const bool found, row.next());
    if (!found) return std::optional<WitnessedHead>();
    return std::optional(WitnessedHead{.sequence = static_cast<std::uint64_t>(row.integer(0)),
                                       .hash = row.text(1),
                                       .key_id = row.text(2),
                                       .signature = row.text(3)});
}

Result<void> Tables::insert(const Row& row) {
    TRY_DO(insert_receipt_.run(number_of(row.sequence), std::string_view(row.id), row.frame.first(),
                               Blob{view_of(row.hash)}, Blob{view_of(row.previous)}));
    if (row.changes_key()) return {};
    return insert_trace_.run(number_of(row.sequence), row.time,
                             static_cast<std::int64_t>(row.sensitivity),
                             domain::to_string(row.outcome), std::string_view(row.member),
                             std::string_view(row.target), row.frame.second());
}

Result<void> Tables::load(Conversations& conversations, std::size_t entries_max) {
    // Least recent first, and one more than fits, so that memory knows when it does not hold all.
    TRY(Statement rows,
        database_.prepare("SELECT * FROM (SELECT id, label, seen FROM conversations "
                          "ORDER BY seen DESC LIMIT ?) ORDER BY seen"));
    rows.query(static_cast<std::int64_t>(entries_max) + 1);
    for (;;) {
        TRY(const bool more, rows.next());
        if (!more) return {};
        TRY(domain::Label label, label_from(rows.bytes(1)));
        conversations.restore(rows.text(0), std::move(label), rows.integer(2));
    }
}

Result<Spending> Tables::spending() {
    Spending spending;
    TRY(Statement rows, database_.prepare("SELECT key_id, day, nano FROM spending"));
    for (;;) {
        TRY(const bool more, rows.next());
        if (!more) return spending;
        spending[{rows.text(0), rows.integer(1)}] = rows.integer(2);
    }
}

Result<std::vector<domain::Trace>> Tables::traces(const TraceQuery& query) {
    TRY(Statement rows,
        database_.prepare(fmt::format("SELECT body, ?1, ?2, ?3, ?4 FROM traces{} ORDER BY sequence "
                                      "DESC LIMIT ?5",
                                      joined_conditions(query))));
    const std::int64_t before = query.before ? micros_of(*query.before) : 0;
    rows.query(std::string_view(query.member), std::string_view(query.target),
               std::string_view(query.outcome), before,
               std::int64_t{std::min(query.limit, traces_max)});
    std::vector<domain::Trace> traces;
    for (;;) {
        TRY(const bool more, rows.next());
        if (!more) return traces;
        TRY(domain::Trace trace, trace_from(rows.bytes(0)));
        traces.push_back(std::move(trace));
    }
}

Result<domain::Trace> Tables::trace(const std::string& id) {
    TRY(Statement row,
        database_.prepare(
            "SELECT traces.body FROM receipts JOIN traces USING(sequence) WHERE id = ? "
            "ORDER BY sequence DESC LIMIT 1"));
    row.query(std::string_view(id));
    TRY(const bool found, row.next());
    if (!found) return no_trace(id);
    return trace_from(row.bytes(0));
}

Result<Receipt> Tables::receipt(const std::string& id) {
    TRY(Statement row, database_.prepare("SELECT sequence, id, body, hash, previous FROM receipts "
                                         "WHERE id = ? ORDER BY sequence DESC LIMIT 1"));
    row.query(std::string_view(id));
    TRY(const bool found, row.next());
    if (!found) return no_trace(id);
    return Receipt{.sequence = static_cast<std::uint64_t>(row.integer(0)),
                   .id = row.text(1),
                   .body = row.text(2),
                   .hash = seal::to_hex(row.bytes(3)),
                   .previous = seal::to_hex(row.bytes(4))};
}

Result<void> Tables::put_response(const std::string& id, const std::string& member,
                                  std::int64_t expires, std::string_view sealed) {
    TRY(Statement insert, database_.prepare("INSERT OR REPLACE INTO responses VALUES(?, ?, ?, ?)"));
    return insert.run(std::string_view(id), std::string_view(member), expires, Blob{sealed});
}

Result<std::string> Tables::response(const std::string& id, const std::string& member,
                                     std::int64_t now) {
    TRY(Statement row, database_.prepare("SELECT sealed FROM responses WHERE id = ? AND member = ? "
                                         "AND expires > ?"));
    row.query(std::string_view(id), std::string_view(member), now);
    TRY(const bool found, row.next());
    if (!found) return no_response();
    return row.text(0);
}

Result<void> Tables::delete_response(const std::string& id, const std::string& member) {
    TRY(Statement remove, database_.prepare("DELETE FROM responses WHERE id = ? AND member = ?"));
    TRY_DO(remove.run(std::string_view(id), std::string_view(member)));
    if (database_.changes() == 0) return no_response();
    return {};
}

Result<std::vector<KeyRow>> Tables::keys() {
    TRY(Statement rows, database_.prepare("SELECT id, parent, hash, hint, body, created, revoked "
                                          "FROM keys ORDER BY created"));
    std::vector<KeyRow> keys;
    for (;;) {
        TRY(const bool more, rows.next());
        if (!more) return keys;
        KeyRow key{.id = rows.text(0),
                   .parent = rows.text(1),
                   .hash = rows.text(2),
                   .hint = rows.text(3),
                   .body = rows.text(4),
                   .created = time_of(rows.integer(5)),
                   .revoked = std::nullopt};
        if (!rows.null(6)) key.revoked = time_of(rows.integer(6));
        keys.push_back(std::move(key));
    }
}

Result<void> Tables::put_key(const KeyRow& row) {
    TRY(Statement insert,
        database_.prepare("INSERT OR REPLACE INTO keys VALUES(?, ?, ?, ?, ?, ?, ?)"));
    const auto put = [&](auto revoked) {
        return insert.run(std::string_view(row.id), std::string_view(row.parent),
                          std::string_view(row.hash), std::string_view(row.hint),
                          std::string_view(row.body), micros_of(row.created), revoked);
    };
    return row.revoked ? put(micros_of(*row.revoked)) : put(nullptr);
}

Result<Tables::Expired> Tables::expire_traces(std::uint64_t after,
                                              const std::array<std::int64_t, 4>& before) {
    static constexpr std::int64_t window = 2000;
    static constexpr std::int64_t hour = 3'600'000'000;
    TRY(Statement first, database_.prepare("SELECT sequence, time FROM traces WHERE sequence > ? "
                                           "ORDER BY sequence LIMIT 1"));
    first.query(number_of(after));
    TRY(const bool found, first.next());
    // Rows are in the order of their ends, so times run back by no more than a request may take.
    if (!found || first.integer(1) > *std::max_element(before.begin(), before.end()) + hour)
        return Expired{};
    const std::int64_t begin = first.integer(0);
    first.reset();
    TRY(Statement remove,
        database_.prepare("DELETE FROM traces WHERE sequence BETWEEN ?1 AND ?2 AND time < CASE "
                          "sensitivity WHEN 0 THEN ?3 WHEN 1 THEN ?4 WHEN 2 THEN ?5 ELSE ?6 END"));
    TRY_DO(remove.run(begin, begin + window - 1, before[0], before[1], before[2], before[3]));
    return Expired{.rows = static_cast<std::uint64_t>(database_.changes()),
                   .next = static_cast<std::uint64_t>(begin + window - 1)};
}

Result<std::uint64_t> Tables::expire_rest(const std::array<std::int64_t, 4>& days_before,
                                          std::int64_t now) {
    static constexpr std::int64_t spending_days = 400;
    std::int64_t rows = 0;
    TRY(Statement responses, database_.prepare("DELETE FROM responses WHERE expires <= ?"));
    TRY_DO(responses.run(now));
    rows += database_.changes();
    TRY(Statement conversations,
        database_.prepare("DELETE FROM conversations WHERE sensitivity = ? AND seen < ?"));
    for (std::size_t i = 0; i < days_before.size(); ++i) {
        TRY_DO(conversations.run(static_cast<std::int64_t>(i), days_before[i]));
        rows += database_.changes();
    }
    TRY(Statement spending, database_.prepare("DELETE FROM spending WHERE day < ?"));
    TRY_DO(spending.run(day_of(time_of(now)) - spending_days));
    return static_cast<std::uint64_t>(rows);
}

}  // namespace molly::store::internal
