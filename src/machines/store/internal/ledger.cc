#include "store/internal/ledger.h"

#include <utility>

#include "store/internal/object_text.h"
#include "store/internal/receipt_text.h"
#include "store/trace_text.h"

namespace molly::store::internal {
namespace {

constexpr std::size_t rows_worth_storing = 256;
constexpr std::size_t pending_max = 1U << 16U;

/// As a trace that has one attempt so far.
void append_departure(std::string& out, const Departure& departure) {
    ObjectText object(out);
    object.text("id", departure.trace_id);
    object.number("time_us", micros_of(departure.time));
    object.text("member", departure.member);
    object.text("key", departure.key_id);
    {
        ObjectText label(object.name("label"));
        label.text("class", to_string(departure.sensitivity));
    }
    {
        ObjectText decision(object.name("decision"));
        decision.text("rule", departure.rule);
        append_tiers(decision.name("permitted"), departure.permitted);
    }
    object.name("attempts") += '[';
    {
        ObjectText attempt(out);
        attempt.text("target", departure.target);
        attempt.text("tier", to_string(departure.tier));
        attempt.text("endpoint", departure.endpoint);
    }
    out += ']';
}

std::unexpected<Error> queue_full() {
    return fail(Error(ErrorCode::exhausted,
                      "the store cannot keep up: too many traces wait for the disk; try again")
                    .italian("l'archivio non tiene il passo: troppe tracce attendono il disco; "
                             "riprovare"));
}

}  // namespace

std::int64_t day_of(WallTime time) noexcept {
    return std::chrono::floor<std::chrono::days>(time).time_since_epoch().count();
}
std::int64_t micros_of(WallTime time) noexcept {
    return std::chrono::floor<std::chrono::microseconds>(time).time_since_epoch().count();
}
WallTime time_of(std::int64_t micros) noexcept {
    return WallTime(
        std::chrono::duration_cast<WallTime::duration>(std::chrono::microseconds(micros)));
}

Row row_of(const domain::Trace& trace, const seal::Hash& key) {
    thread_local std::string receipt;
    thread_local std::string text;
    receipt.clear();
    text.clear();
    append_receipt(receipt, trace);
    append_trace(text, trace);
    Row row;
    row.time = micros_of(trace.time);
    row.sensitivity = trace.label.sensitivity;
    row.outcome = trace.outcome;
    row.id = trace.id;
    row.member = trace.member;
    row.target = trace.target;
    row.key_id = trace.key_id;
    row.cost = trace.cost;
    row.frame = Frame(FrameKind::trace, receipt, text, key);
    return row;
}

Row key_change_row(WallTime now, std::string_view from, std::string_view public_key,
                   const seal::Hash& key) {
    const KeyChangeText change = key_change(now, from, public_key);
    std::string body;
    append_key_change(body, change);
    Row row;
    row.time = micros_of(now);
    row.id = key_change_id(change);
    row.frame = Frame(FrameKind::key_change, body, {}, key);
    return row;
}

Result<Row> row_from(Frame frame) {
    if (frame.kind() == FrameKind::key_change) {
        Row row;
        row.id = receipt_id(frame.first());
        row.frame = std::move(frame);
        return row;
    }
    TRY(const domain::Trace trace, trace_from(frame.second()));
    Row row;
    row.time = micros_of(trace.time);
    row.sensitivity = trace.label.sensitivity;
    row.outcome = trace.outcome;
    row.id = trace.id;
    row.member = trace.member;
    row.target = trace.target;
    row.key_id = trace.key_id;
    row.conversation = trace.conversation;
    row.cost = trace.cost;
    row.frame = std::move(frame);
    return row;
}

Frame frame_of(const Departure& departure, const seal::Hash& key) {
    thread_local std::string text;
    text.clear();
    append_departure(text, departure);
    std::string number;
    append_number(number, departure.attempt);
    return Frame(FrameKind::departure, number, text, key);
}

Result<Departure> departure_from(const Frame& frame) {
    TRY(domain::Trace trace, trace_from(frame.second()));
    if (trace.attempts.empty()) return fail(ErrorCode::corrupt, "a departure names no target");
    domain::Attempt& attempt = trace.attempts.front();
    Departure departure{.trace_id = std::move(trace.id),
                        .target = std::move(attempt.target),
                        .tier = attempt.tier,
                        .endpoint = std::move(attempt.endpoint),
                        .sensitivity = trace.label.sensitivity,
                        .time = trace.time,
                        .member = std::move(trace.member),
                        .key_id = std::move(trace.key_id),
                        .rule = std::move(trace.decision.rule),
                        .permitted = trace.decision.permitted};
    const std::string_view number = frame.first();
    std::from_chars(number.data(), number.data() + number.size(), departure.attempt);
    return departure;
}

Result<void> Ledger::start(std::uint64_t sequence, const seal::Hash& head) {
    const std::scoped_lock lock(mutex_);
    sequence_ = sequence;
    head_ = head;
    return journal_.start(sequence_ + 1);
}

Result<void> Ledger::depart(const Departure& departure) {
    Frame frame = frame_of(departure, key_);
    const std::scoped_lock lock(mutex_);
    if (pending_.size() >= pending_max) return queue_full();
    TRY_DO(journal_.add(frame));
    pending_[departure.trace_id].push_back(std::move(frame));
    return {};
}

Result<void> Ledger::append(Row row) {
    bool notify = false;
    {
        const std::scoped_lock lock(mutex_);
        if (rows_.size() >= rows_max_) return queue_full();
        TRY_DO(journal_.add(row.frame));
        row.sequence = ++sequence_;
        row.previous = head_;
        row.hash = seal::sha256_link(head_, row.frame.first());
        head_ = row.hash;
        if (!pending_.empty()) pending_.erase(row.id);
        rows_.push_back(std::move(row));
        notify = rows_.size() == 1 || rows_.size() == rows_worth_storing;
    }
    if (notify) changed_.notify_one();
    return {};
}

void Ledger::wait(std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::minutes(1), [this] { return woken_ || !rows_.empty(); });
    if (rows_.empty() && leaving_.empty()) patience = std::chrono::milliseconds(0);
    changed_.wait_for(lock, patience,
                      [this] { return woken_ || rows_.size() >= rows_worth_storing; });
    woken_ = false;
}

void Ledger::wake() {
    {
        const std::scoped_lock lock(mutex_);
        woken_ = true;
    }
    changed_.notify_one();
}

Result<const std::vector<Row>*> Ledger::take() {
    const std::scoped_lock lock(mutex_);
    if (leaving_.empty() && !rows_.empty()) TRY_DO(rotate());
    return &leaving_;
}

Result<void> Ledger::rotate() {
    std::vector<const Frame*> carried;
    for (const auto& [id, frames] : pending_) {
        for (const Frame& frame : frames)
            carried.push_back(&frame);
    }
    TRY_DO(journal_.rotate(sequence_ + 1, carried));
    leaving_.swap(rows_);
    return {};
}

void Ledger::stored() {
    // Without the lock: many frees and a truncation would hold up every request.
    leaving_.clear();
    journal_.retire();
}

}  // namespace molly::store::internal
