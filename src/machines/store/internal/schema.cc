#include <fmt/format.h>

#include "store/internal/tables.h"

namespace molly::store::internal {
namespace {

constexpr std::int64_t application_id = 0x4d6f6c79;  // "Moly"
constexpr std::int64_t version = 1;

// The number of a trace is the number of its receipt; a receipt stays when its trace expires.
constexpr const char* tables = R"(
CREATE TABLE signers(
    key_id TEXT PRIMARY KEY,
    public_key BLOB NOT NULL,
    since INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE receipts(
    sequence INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    body TEXT NOT NULL,
    hash BLOB NOT NULL,
    previous BLOB NOT NULL
);
CREATE INDEX receipts_by_id ON receipts(id);
CREATE TABLE heads(
    sequence INTEGER PRIMARY KEY,
    key_id TEXT NOT NULL,
    signature BLOB NOT NULL
);
CREATE TABLE traces(
    sequence INTEGER PRIMARY KEY,
    time INTEGER NOT NULL,
    sensitivity INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    member TEXT NOT NULL,
    target TEXT NOT NULL,
    body TEXT NOT NULL
);
CREATE TABLE spending(
    key_id TEXT NOT NULL,
    day INTEGER NOT NULL,
    nano INTEGER NOT NULL,
    PRIMARY KEY(key_id, day)
) WITHOUT ROWID;
CREATE TABLE conversations(
    id TEXT PRIMARY KEY,
    sensitivity INTEGER NOT NULL,
    label TEXT NOT NULL,
    seen INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE responses(
    id TEXT NOT NULL UNIQUE,
    member TEXT NOT NULL,
    expires INTEGER NOT NULL,
    sealed BLOB NOT NULL
);
CREATE TABLE keys(
    id TEXT PRIMARY KEY,
    parent TEXT NOT NULL,
    hash TEXT NOT NULL,
    hint TEXT NOT NULL,
    body TEXT NOT NULL,
    created INTEGER NOT NULL,
    revoked INTEGER
) WITHOUT ROWID;
)";

// Came later, and an older Molly does not mind them.
constexpr const char* later_tables = R"(
CREATE TABLE IF NOT EXISTS fingerprint_labels(
    number INTEGER PRIMARY KEY,
    sensitivity INTEGER NOT NULL,
    label TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS fingerprints(
    print INTEGER PRIMARY KEY,
    stamp INTEGER NOT NULL,
    label INTEGER NOT NULL,
    day INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS estimates(
    target TEXT NOT NULL,
    adapter TEXT NOT NULL,
    field TEXT NOT NULL,
    band TEXT NOT NULL,
    mean INTEGER NOT NULL,
    weight INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    PRIMARY KEY(target, adapter, field, band)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS feedback(
    trace TEXT PRIMARY KEY,
    score INTEGER NOT NULL,
    time INTEGER NOT NULL
) WITHOUT ROWID;
)";

}  // namespace

Result<void> prepare_schema(Database& database) {
    TRY(const std::int64_t found, database.integer("PRAGMA user_version"));
    TRY(const std::int64_t owner, database.integer("PRAGMA application_id"));
    TRY(const std::int64_t objects, database.integer("SELECT count(*) FROM sqlite_schema"));
    if (found == 0 && objects == 0) {
        return database.execute(fmt::format(
            "BEGIN IMMEDIATE; {} {} PRAGMA application_id={}; PRAGMA user_version={}; COMMIT;",
            tables, later_tables, application_id, version));
    }
    if (owner != application_id) {
        return fail(Error(ErrorCode::corrupt,
                          "molly.db belongs to another program; move it away or choose another "
                          "data folder")
                        .italian("molly.db appartiene a un altro programma; spostarlo o scegliere "
                                 "un'altra cartella dati"));
    }
    if (found > version) {
        return fail(
            Error(ErrorCode::unsupported,
                  fmt::format("molly.db was written by a newer Molly (format {}, this one knows "
                              "{}); update Molly",
                              found, version))
                .italian(fmt::format("molly.db è stato scritto da una Molly più recente (formato "
                                     "{}, questa conosce {}); aggiornare Molly",
                                     found, version)));
    }
    return database.execute(later_tables);
}

}  // namespace molly::store::internal
