#include "store/internal/tables.h"
#include "store/trace_text.h"

namespace molly::store::internal {
namespace {

// SQLite knows signed numbers only; the bits stay.
std::int64_t bits_of(std::uint64_t print) noexcept {
    return static_cast<std::int64_t>(print);
}

}  // namespace

Result<void> Tables::put_prints(const PrintChange& change) {
    TRY_DO(begin_.run());
    auto put = put_prints_within(change);
    if (put) put = commit_.run();
    if (!put) (void)rollback_.run();
    return put;
}

Result<void> Tables::put_prints_within(const PrintChange& change) {
    if (change.text) {
        TRY(Statement label,
            database_.prepare("INSERT OR REPLACE INTO fingerprint_labels VALUES(?, ?, ?)"));
        TRY_DO(label.run(std::int64_t{change.label}, static_cast<std::int64_t>(change.sensitivity),
                         std::string_view(*change.text)));
    }
    TRY(Statement insert,
        database_.prepare("INSERT OR REPLACE INTO fingerprints VALUES(?, ?, ?, ?)"));
    for (const KnownPrint& known : change.known) {
        TRY_DO(insert.run(bits_of(known.print), std::int64_t{known.stamp},
                          std::int64_t{known.label}, std::int64_t{known.day}));
    }
    if (!change.gone) return {};
    TRY(Statement remove,
        database_.prepare("DELETE FROM fingerprints WHERE label = ? AND stamp <= ?"));
    return remove.run(std::int64_t{change.gone->label}, std::int64_t{change.gone->up_to});
}

Result<void> Tables::load(FingerprintIndex& index) {
    TRY(Statement labels, database_.prepare("SELECT number, label FROM fingerprint_labels"));
    for (;;) {
        TRY(const bool more, labels.next());
        if (!more) break;
        TRY(domain::Label label, label_from(labels.bytes(1)));
        index.restore_label(static_cast<std::uint16_t>(labels.integer(0)), std::move(label));
    }
    TRY(Statement rows, database_.prepare("SELECT print, stamp, label, day FROM fingerprints"));
    for (;;) {
        TRY(const bool more, rows.next());
        if (!more) return {};
        index.restore({.print = static_cast<std::uint64_t>(rows.integer(0)),
                       .stamp = static_cast<std::uint32_t>(rows.integer(1)),
                       .label = static_cast<std::uint16_t>(rows.integer(2)),
                       .day = static_cast<std::uint16_t>(rows.integer(3))});
    }
}

Result<std::uint64_t> Tables::expire_prints(const std::array<std::int64_t, 4>& days_before) {
    std::int64_t rows = 0;
    TRY(Statement remove,
        database_.prepare("DELETE FROM fingerprints WHERE day < ? AND label IN (SELECT number FROM "
                          "fingerprint_labels WHERE sensitivity = ?)"));
    for (std::size_t i = 0; i < days_before.size(); ++i) {
        TRY_DO(remove.run(days_before[i], static_cast<std::int64_t>(i)));
        rows += database_.changes();
    }
    return static_cast<std::uint64_t>(rows);
}

}  // namespace molly::store::internal
