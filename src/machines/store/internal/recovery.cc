#include "store/internal/recovery.h"

#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "store/internal/receipt_text.h"

namespace molly::store::internal {
namespace {

constexpr const char* lost = "the process ended before the outcome was known";

/// The trace of a request whose process died: where its bytes went is known, what came of it is
/// not.
domain::Trace failed_trace(const std::vector<Departure>& departures) {
    const Departure& first = departures.front();
    domain::Trace trace;
    trace.id = first.trace_id;
    trace.time = first.time;
    trace.member = first.member;
    trace.key_id = first.key_id;
    trace.decision.rule = first.rule;
    trace.decision.permitted = first.permitted;
    trace.label.sensitivity = first.sensitivity;
    for (const Departure& departure : departures) {
        domain::Attempt attempt;
        attempt.target = departure.target;
        attempt.tier = departure.tier;
        attempt.endpoint = departure.endpoint;
        attempt.failed = ErrorCode::internal;
        attempt.failure = lost;
        trace.attempts.push_back(std::move(attempt));
    }
    trace.outcome = domain::Outcome::failed;
    trace.failure = fmt::format("internal: {}", lost);
    return trace;
}

/// Puts the rows into the chain.
void link(std::vector<Row>& rows, ChainState& chain) {
    for (Row& row : rows) {
        row.sequence = ++chain.sequence;
        row.previous = chain.hash;
        row.hash = seal::sha256_link(chain.hash, row.frame.first());
        chain.hash = row.hash;
    }
}

/// A change of keys that was begun and whose new key is not here did not happen: nothing that it
/// should sign was stored.
void drop_unprepared(std::vector<Row>& rows, const Signer& signer) {
    const std::string prepared =
        signer.successor() != nullptr ? signer.successor()->key_id() : std::string();
    const auto dropped = std::erase_if(rows, [&](const Row& row) {
        if (!row.changes_key()) return false;
        const auto change = key_change_from(row.frame.first());
        return !change || change->to != prepared || change->from != signer.key().key_id();
    });
    if (dropped > 0) log_event(LogLevel::warning, "store_key_change_dropped");
}

/// Departures whose outcome is not known yet, by trace.
using Open = std::map<std::string, std::vector<Departure>, std::less<>>;

Result<void> take_frame(Frame frame, bool known, std::vector<Row>& rows, Open& open) {
    if (frame.kind() == FrameKind::departure) {
        TRY(Departure departure, departure_from(frame));
        open[departure.trace_id].push_back(std::move(departure));
        return {};
    }
    TRY(Row row, row_from(std::move(frame)));
    open.erase(row.id);
    if (!known) rows.push_back(std::move(row));
    return {};
}

Result<void> read_back(std::vector<JournalFile> files, std::uint64_t sequence,
                       std::vector<Row>& rows, Open& open) {
    for (JournalFile& file : files) {
        if (file.torn) log_event(LogLevel::warning, "store_journal_torn");
        // After a power cut the journal may be ahead of the database; what it holds is chained on.
        if (file.base > sequence + rows.size() + 1) {
            log_event(LogLevel::warning, "store_receipts_lost",
                      {{"stored", sequence}, {"journal_from", file.base}});
        }
        std::uint64_t number = file.base;
        for (Frame& frame : file.frames) {
            const bool receipt = frame.kind() != FrameKind::departure;
            TRY_DO(take_frame(std::move(frame), receipt && number <= sequence, rows, open));
            if (receipt) ++number;
        }
    }
    return {};
}

}  // namespace

Result<Recovered> recover_rows(std::vector<JournalFile> files, const Signer& signer,
                               const seal::Hash& journal_key, ChainState& chain) {
    Recovered recovered;
    Open open;
    TRY_DO(read_back(std::move(files), chain.sequence, recovered.rows, open));
    for (const auto& [id, departures] : open)
        recovered.rows.push_back(row_of(failed_trace(departures), journal_key));
    recovered.without_outcome = open.size();
    drop_unprepared(recovered.rows, signer);
    link(recovered.rows, chain);
    return recovered;
}

}  // namespace molly::store::internal
