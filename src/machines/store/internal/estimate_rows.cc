// The router's estimates and the judgements of traces. Shares lie as millionths: SQLite's text form
// of a float is nobody's contract.
#include <cmath>

#include "store/internal/tables.h"

namespace molly::store::internal {
namespace {

constexpr double unit = 1e6;

std::int64_t millionths(double value) noexcept {
    return static_cast<std::int64_t>(std::llround(value * unit));
}

Error judged_already() {
    return Error(ErrorCode::conflict, "this answer has been judged already")
        .italian("questa risposta è già stata giudicata");
}

}  // namespace

Result<std::vector<EstimateRow>> Tables::estimates() {
    TRY(Statement rows, database_.prepare("SELECT target, adapter, field, band, mean, weight, "
                                          "updated FROM estimates"));
    std::vector<EstimateRow> out;
    for (;;) {
        TRY(const bool more, rows.next());
        if (!more) return out;
        out.push_back({.target = rows.text(0),
                       .adapter = rows.text(1),
                       .field = rows.text(2),
                       .band = rows.text(3),
                       .mean = static_cast<double>(rows.integer(4)) / unit,
                       .weight = static_cast<double>(rows.integer(5)) / unit,
                       .updated = time_of(rows.integer(6))});
    }
}

Result<void> Tables::put_estimates(const std::vector<EstimateRow>& rows) {
    TRY(Statement insert,
        database_.prepare("INSERT OR REPLACE INTO estimates VALUES(?, ?, ?, ?, ?, ?, ?)"));
    for (const EstimateRow& row : rows) {
        TRY_DO(insert.run(std::string_view(row.target), std::string_view(row.adapter),
                          std::string_view(row.field), std::string_view(row.band),
                          millionths(row.mean), millionths(row.weight), micros_of(row.updated)));
    }
    return {};
}

Result<void> Tables::put_feedback(const std::string& trace_id, double score, WallTime now) {
    TRY(Statement known, database_.prepare("SELECT 1 FROM feedback WHERE trace = ?"));
    known.query(std::string_view(trace_id));
    TRY(const bool found, known.next());
    if (found) return fail(judged_already());
    known.reset();
    TRY(Statement insert, database_.prepare("INSERT INTO feedback VALUES(?, ?, ?)"));
    return insert.run(std::string_view(trace_id), millionths(score), micros_of(now));
}

}  // namespace molly::store::internal
