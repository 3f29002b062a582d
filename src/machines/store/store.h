#pragma once
// What happened: traces, receipts, keys, conversation labels, in SQLite (WAL, one writer thread,
// group commit). Awaited calls resume on the caller's executor once the transaction has committed.
// Safe from any thread.
#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/task.h"
#include "domain/label.h"
#include "domain/trace.h"
#include "seal/seal.h"

namespace molly::store {

enum class Durability : std::uint8_t {
    process,  ///< survives kill -9 (the default)
    power,    ///< survives a power cut as well: one fsync per group commit
};

/// How long what is kept, per class.
struct Retention {
    std::chrono::days traces{90};
    bool responses = true;  ///< whether the Responses API may store the conversation (sealed)
    std::chrono::days responses_for{30};
};

struct Options {
    std::filesystem::path folder;  ///< holds molly.db and the keys; made with mode 0700
    Durability durability = Durability::process;
    std::uint32_t queue_max =
        32768;  ///< committed traces that SQLite has not taken yet; one more is exhausted
    std::array<Retention, 4> retention;          ///< indexed by Sensitivity
    std::uint32_t fingerprints_max = 1U << 20U;  ///< of labelled text, oldest of a label go first
    std::filesystem::path witness_file;  ///< gets signed heads, best on another medium; empty: none
    std::chrono::seconds witness_every{60};  ///< no two heads closer than this
};

/// A row of the egress table: bytes are about to leave for this target. Committed before they do.
struct Departure {
    std::string trace_id;
    std::uint32_t attempt = 0;
    std::string target;
    domain::Tier tier = domain::Tier::t1;
    std::string endpoint;
    domain::Sensitivity sensitivity = domain::Sensitivity::private_;
    WallTime time;
    // For the receipt, should the process end before the outcome is known.
    std::string member = {};
    std::string key_id = {};
    std::string rule = {};  ///< the policy rule that decided
    domain::TierSet permitted = {};
};

/// A signed, chained record of one answer.
struct Receipt {
    std::uint64_t sequence = 0;  ///< from 1
    std::string id;              ///< the trace's
    std::string body;            ///< canonical JSON
    std::string hash;            ///< hex
    std::string previous;        ///< hex
};

/// One signing key has followed another.
struct KeyChange {
    std::string retired;         ///< id of the key that signed until here
    std::string key_id;          ///< that signs from now on
    std::uint64_t sequence = 0;  ///< of the receipt that says so, the last one under the old key
};

/// The label of text that came by before.
struct Recognised {
    domain::Label label;
    std::uint32_t count = 0;  ///< fingerprints that it was known by
};

/// Selects traces, newest first.
struct TraceQuery {
    std::uint32_t limit = 50;  ///< at most 10,000
    std::string member;
    std::string target;
    std::string outcome;
    std::optional<WallTime> before;
};

/// One row of the keys table; `members` gives it meaning.
struct KeyRow {
    std::string id;
    std::string parent;  ///< id of the key that made it, or empty
    std::string hash;    ///< SHA-256 of the key, hex
    std::string hint;    ///< last four characters
    std::string body;    ///< JSON of scopes and limits
    WallTime created;
    std::optional<WallTime> revoked;
};

/// One cell of the router's estimates; `router` gives it meaning.
struct EstimateRow {
    std::string target;
    std::string adapter;
    std::string field;
    std::string band;
    double mean = 0;
    double weight = 0;
    WallTime updated;
};

class Store {
public:
    /// Opens or makes the store and takes the writer's lock on the folder. Traces of departures
    /// without an outcome (the process died) are closed as failed. Errors: conflict (another
    /// process writes here), corrupt, unavailable.
    static Result<std::unique_ptr<Store>> open(const Options& options);
    virtual ~Store() =
        default;  // commits what is queued, then joins; destroy before the IO threads

    /// Commits the departure. Errors: exhausted, unavailable.
    virtual Task<Result<void>> depart(Departure departure) = 0;
    /// Commits the trace, its receipt and the conversation's label, raised by the trace's or
    /// lowered by its act, in one transaction. Ids from seal::ordered_token keep the index cheap.
    /// Errors: exhausted, unavailable, conflict (the id has a trace already).
    virtual Task<Result<void>> append(domain::Trace trace) = 0;

    virtual Task<Result<std::vector<domain::Trace>>> traces(TraceQuery query) = 0;
    /// Errors: not_found.
    virtual Task<Result<domain::Trace>> trace(std::string id) = 0;
    virtual Task<Result<Receipt>> receipt(std::string id) = 0;

    /// Makes a new signing key, has the old one sign it into the log, and destroys the old one.
    /// Errors: exhausted, unavailable; denied (a key file that others can read).
    virtual Task<Result<KeyChange>> rotate_key() = 0;

    /// The label that sticks to a conversation, if it is known. From memory; never waits.
    virtual std::optional<domain::Label> conversation_label(
        const std::string& conversation) const = 0;

    /// Whether any fingerprint is known at all. From memory; never waits.
    virtual bool knows_fingerprints() const noexcept = 0;
    /// The join of the labels that at least `enough` of `prints` are known under. From memory;
    /// never waits for the disk.
    virtual std::optional<Recognised> recognise(std::span<const std::uint64_t> prints,
                                                std::uint32_t enough) const = 0;
    /// Knows `prints` under `label` from now on, until traces of its class expire. A crash may
    /// forget what was remembered within the last moments.
    virtual void remember(std::span<const std::uint64_t> prints, const domain::Label& label) = 0;

    /// A sealed conversation of the Responses API, kept as the label's retention allows.
    virtual Task<Result<void>> put_response(std::string id, std::string body, domain::Label label,
                                            std::string member) = 0;
    /// Errors: not_found (unknown, expired, of another member, or never stored because of its
    /// label).
    virtual Task<Result<std::string>> get_response(std::string id, std::string member) = 0;
    virtual Task<Result<void>> delete_response(std::string id, std::string member) = 0;

    virtual Result<std::vector<KeyRow>> keys() = 0;
    virtual Task<Result<void>> put_key(KeyRow row) = 0;
    /// What was learned of targets, read at the start.
    virtual Result<std::vector<EstimateRow>> estimates() = 0;
    /// Keeps these cells, each instead of its former self.
    virtual Task<Result<void>> put_estimates(std::vector<EstimateRow> rows) = 0;
    /// Keeps that a trace was judged. Errors: conflict (it was before).
    virtual Task<Result<void>> put_feedback(std::string trace_id, double score) = 0;

    /// Total cost of a key's traces since the UTC day of `since`, for its budget. From memory; what
    /// retention removed still counts.
    virtual Result<domain::Money> spent(const std::string& key_id, WallTime since) = 0;

    /// Removes what retention no longer allows; also runs by itself every hour. Gives the number of
    /// rows.
    virtual Task<Result<std::uint64_t>> expire() = 0;
};

}  // namespace molly::store
