#pragma once
// The hot half of the store: commits departures and traces to the journal on the calling thread,
// chains the receipts, and keeps what SQLite has not taken yet. Safe from any thread; `take` and
// `stored` are the database thread's.
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "domain/trace.h"
#include "store/internal/journal.h"
#include "store/store.h"

namespace molly::store::internal {

/// UTC days since the epoch.
std::int64_t day_of(WallTime time) noexcept;
/// Microseconds since the epoch, and back.
std::int64_t micros_of(WallTime time) noexcept;
WallTime time_of(std::int64_t micros) noexcept;

/// One committed trace on its way into SQLite.
struct Row {
    std::uint64_t sequence = 0;
    seal::Hash previous{};
    seal::Hash hash{};
    std::int64_t time = 0;
    domain::Sensitivity sensitivity{};
    domain::Outcome outcome{};
    std::string id;
    std::string member;
    std::string target;
    std::string key_id;
    std::string conversation;  // empty: its label is stored already
    domain::Money cost;
    Frame frame;  // first: the receipt's body, second: the trace's text

    bool changes_key() const noexcept { return frame.kind() == FrameKind::key_change; }
};

/// A row with everything but its place in the chain.
Row row_of(const domain::Trace& trace, const seal::Hash& key);
/// The row of a receipt that names the next signing key; it has no trace.
Row key_change_row(WallTime now, std::string_view from, std::string_view public_key,
                   const seal::Hash& key);
/// The same of a frame that was read back. Errors: corrupt.
Result<Row> row_from(Frame frame);

/// A departure's frame, and back. Errors: corrupt.
Frame frame_of(const Departure& departure, const seal::Hash& key);
Result<Departure> departure_from(const Frame& frame);

class Ledger {
public:
    Ledger(Journal journal, const seal::Hash& key, std::size_t rows_max)
        : journal_(std::move(journal)), key_(key), rows_max_(rows_max) {}

    /// Goes on after the last stored receipt. Errors: as Journal.
    Result<void> start(std::uint64_t sequence, const seal::Hash& head);

    /// Errors: exhausted, unavailable.
    Result<void> depart(const Departure& departure);
    Result<void> append(Row row);

    /// Waits until rows are worth storing, `patience` after the first row is over, `wake` was
    /// called, or a minute has passed.
    void wait(std::chrono::milliseconds patience);
    /// Ends a `wait`.
    void wake();

    /// The rows that SQLite has not taken. The same ones until `stored`. Errors: as Journal.
    Result<const std::vector<Row>*> take();
    /// SQLite has committed what `take` gave. Call `sync` first where a power cut matters: pending
    /// departures moved to the other file.
    void stored();

    /// Forces what is committed to the disk. Errors: unavailable.
    Result<void> sync() const { return journal_.sync(); }

private:
    Result<void> rotate();

    Journal journal_;
    const seal::Hash key_;
    const std::size_t rows_max_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    bool woken_ = false;
    std::uint64_t sequence_ = 0;
    seal::Hash head_{};
    std::vector<Row> rows_;     // committed since the rotation
    std::vector<Row> leaving_;  // what `take` gave; the database thread's
    std::unordered_map<std::string, std::vector<Frame>> pending_;  // departures, by trace
};

}  // namespace molly::store::internal
