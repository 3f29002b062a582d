#include "store/internal/sqlite_store.h"

#include <algorithm>
#include <future>
#include <utility>

#include <fmt/format.h>

#include "base/coroutine.h"
#include "base/log.h"
#include "store/internal/recovery.h"
#include "store/trace_text.h"

// GCC 12 takes the coroutine frame's own operator delete for a mismatch once it has inlined half of
// the pair; there is none.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

namespace molly::store::internal {
namespace {

constexpr std::chrono::milliseconds flush_patience{50};
constexpr std::chrono::milliseconds failure_pause{200};
constexpr std::size_t jobs_max = 1024;
constexpr std::size_t conversations_max = 1U << 18U;

std::unexpected<Error> too_many_jobs() {
    return fail(Error(ErrorCode::exhausted, "the store is busy: too many reads wait; try again")
                    .italian("l'archivio è occupato: troppe letture in attesa; riprovare"));
}

std::unexpected<Error> cannot_write() {
    return fail(Error(ErrorCode::unavailable,
                      "the store cannot write now, so the key stays; see `molly doctor`")
                    .italian("l'archivio ora non può scrivere, la chiave resta; vedi `molly "
                             "doctor`"));
}

Result<void> make_folder(const std::filesystem::path& folder) {
    std::error_code error;
    if (std::filesystem::is_directory(folder, error)) return {};
    std::filesystem::create_directories(folder, error);
    if (!error) std::filesystem::permissions(folder, std::filesystem::perms::owner_all, error);
    if (!error) return {};
    return fail(Error(ErrorCode::unavailable, fmt::format("cannot make the data folder {}: {}",
                                                          folder.string(), error.message()))
                    .italian(fmt::format("impossibile creare la cartella dati {}: {}",
                                         folder.string(), error.message())));
}

}  // namespace

struct SqliteStore::Expiry {
    std::array<std::int64_t, 4> before{};
    std::array<std::int64_t, 4> days{};
    std::int64_t now = 0;
    std::uint64_t after = 0;
    std::uint64_t rows = 0;
    std::shared_ptr<Promise<Result<std::uint64_t>>> promise;
};

Result<std::unique_ptr<Store>> SqliteStore::open(const Options& options) {
    TRY_DO(make_folder(options.folder));
    TRY(FolderLock lock, FolderLock::take(options.folder));
    TRY(Signer signer, Signer::open(options.folder));
    TRY(seal::Vault vault, seal::Vault::load_or_create(options.folder / "vault.key"));
    TRY(Tables tables, Tables::open(options.folder / "molly.db", options.durability));
    const seal::Hash journal_key = seal::sha256(vault.derive("journal"));
    TRY(Journal journal, Journal::open(options.folder, journal_key));
    std::unique_ptr<SqliteStore> store(new SqliteStore({.options = options,
                                                        .lock = std::move(lock),
                                                        .signer = std::move(signer),
                                                        .vault = std::move(vault),
                                                        .tables = std::move(tables),
                                                        .journal_key = journal_key},
                                                       std::move(journal)));
    TRY_DO(store->load());
    TRY_DO(store->recover());
    store->start();
    return store;
}

SqliteStore::SqliteStore(Parts parts, Journal journal)
    : parts_(std::move(parts)),
      ledger_(std::move(journal), parts_.journal_key, parts_.options.queue_max),
      conversations_(conversations_max),
      prints_(parts_.options.fingerprints_max),
      witness_(parts_.options.witness_file, parts_.options.witness_every) {}

Result<void> SqliteStore::load() {
    TRY_DO(parts_.tables.load(conversations_, conversations_max));
    TRY_DO(parts_.tables.load(prints_));
    TRY(spending_, parts_.tables.spending());
    TRY(lookup_, Database::open(parts_.options.folder / "molly.db", Access::read));
    TRY(Statement statement, lookup_.prepare("SELECT label FROM conversations WHERE id = ?"));
    auto shared = std::make_shared<Statement>(std::move(statement));
    conversations_.look_up([shared](const std::string& id) -> std::optional<domain::Label> {
        shared->query(std::string_view(id));
        const auto found = shared->next();
        std::optional<domain::Label> label;
        if (found && *found) {
            auto read = label_from(shared->bytes(0));
            if (read) label = *std::move(read);
        }
        shared->reset();
        return label;
    });
    return {};
}

Result<void> SqliteStore::recover() {
    TRY(ChainState chain, parts_.tables.chain(parts_.signer));
    TRY(auto files, read_journal(parts_.options.folder, parts_.journal_key));
    TRY(const Recovered recovered,
        recover_rows(std::move(files), parts_.signer, parts_.journal_key, chain));
    for (const Row& row : recovered.rows) {
        const std::int64_t day = day_of(time_of(row.time));
        add_spending(row.key_id, day, row.cost);
        if (row.conversation.empty()) continue;
        TRY(const domain::Trace trace, trace_from(row.frame.second()));
        if (trace.lowered) {
            conversations_.lower(row.conversation, trace.lowered->to, day);
        } else {
            conversations_.raise(row.conversation, trace.label, day);
        }
    }
    TRY_DO(parts_.tables.store(recovered.rows, conversations_, parts_.signer));
    if (!recovered.rows.empty()) {
        log_event(
            LogLevel::info, "store_recovered",
            {{"traces", recovered.rows.size()}, {"without_outcome", recovered.without_outcome}});
    }
    return ledger_.start(chain.sequence, chain.hash);
}

void SqliteStore::start() {
    if (parts_.options.durability == Durability::power) syncer_ = std::make_unique<Syncer>(ledger_);
    database_thread_ = std::thread([this] { run_database(); });
}

SqliteStore::~SqliteStore() {
    if (!database_thread_.joinable()) return;
    {
        const std::scoped_lock lock(jobs_mutex_);
        stopping_ = true;
    }
    ledger_.wake();
    database_thread_.join();
}

Task<Result<void>> SqliteStore::depart(Departure departure) {
    Result<void> written = ledger_.depart(departure);
    if (written && syncer_) written = co_await syncer_->sync();
    co_return written;
}

Task<Result<void>> SqliteStore::append(domain::Trace trace) {
    Result<void> written = commit(trace);
    if (written && syncer_) written = co_await syncer_->sync();
    co_return written;
}

Result<void> SqliteStore::commit(const domain::Trace& trace) {
    Row row = row_of(trace, parts_.journal_key);
    const std::int64_t day = day_of(trace.time);
    const bool sticks = !trace.conversation.empty();
    if (trace.lowered) {
        conversations_.lower(trace.conversation, trace.lowered->to, day);
        row.conversation = trace.conversation;
    } else if (sticks && conversations_.raise(trace.conversation, trace.label, day)) {
        row.conversation = trace.conversation;
    }
    if (auto written = ledger_.append(std::move(row)); !written) {
        // An act that is not recorded did not happen.
        if (trace.lowered) conversations_.raise(trace.conversation, trace.label, day);
        return written;
    }
    add_spending(trace.key_id, day, trace.cost);
    return {};
}

void SqliteStore::add_spending(const std::string& key_id, std::int64_t day, domain::Money cost) {
    if (cost.nano == 0) return;
    const std::scoped_lock lock(spending_mutex_);
    spending_[{key_id, day}] += cost.nano;
}

Result<domain::Money> SqliteStore::spent(const std::string& key_id, WallTime since) {
    const std::scoped_lock lock(spending_mutex_);
    domain::Money total;
    for (auto entry = spending_.lower_bound({key_id, day_of(since)});
         entry != spending_.end() && entry->first.first == key_id; ++entry)
        total.nano += entry->second;
    return total;
}

std::optional<domain::Label> SqliteStore::conversation_label(
    const std::string& conversation) const {
    return conversations_.find(conversation);
}

void SqliteStore::remember(std::span<const std::uint64_t> prints, const domain::Label& label) {
    const auto day = static_cast<std::uint16_t>(day_of(system_clock().wall()));
    auto change = std::make_shared<PrintChange>(prints_.add(prints, label, day));
    (void)post([change](Tables& tables) {
        const auto put = tables.put_prints(*change);
        if (!put)
            log_event(LogLevel::error, "fingerprints_failed", {{"error", put.error().message()}});
    });
}

template <class T>
Task<Result<T>> SqliteStore::ask(std::function<Result<T>(Tables&)> job) {
    auto promise = std::make_shared<Promise<Result<T>>>();
    const bool posted =
        post([promise, job = std::move(job)](Tables& tables) { promise->set(job(tables)); });
    if (!posted) co_return too_many_jobs();
    co_return co_await promise->wait();
}

Task<Result<std::vector<domain::Trace>>> SqliteStore::traces(TraceQuery query) {
    std::function<Result<std::vector<domain::Trace>>(Tables&)> job =
        [query = std::move(query)](Tables& tables) { return tables.traces(query); };
    co_return co_await ask(std::move(job));
}

Task<Result<domain::Trace>> SqliteStore::trace(std::string id) {
    std::function<Result<domain::Trace>(Tables&)> job = [id = std::move(id)](Tables& tables) {
        return tables.trace(id);
    };
    co_return co_await ask(std::move(job));
}

Task<Result<Receipt>> SqliteStore::receipt(std::string id) {
    std::function<Result<Receipt>(Tables&)> job = [id = std::move(id)](Tables& tables) {
        return tables.receipt(id);
    };
    co_return co_await ask(std::move(job));
}

Task<Result<KeyChange>> SqliteStore::rotate_key() {
    std::function<Result<KeyChange>(Tables&)> job = [this](Tables&) { return change_key(); };
    co_return co_await ask(std::move(job));
}

Result<KeyChange> SqliteStore::change_key() {
    Signer& signer = parts_.signer;
    // A change that still waits for the disk comes first.
    if (failing_) return cannot_write();
    TRY_DO(signer.prepare());
    KeyChange change{.retired = signer.key().key_id(), .key_id = signer.successor()->key_id()};
    TRY_DO(ledger_.append(key_change_row(system_clock().wall(), change.retired,
                                         signer.successor()->public_key(), parts_.journal_key)));
    flush();
    if (signer.key().key_id() != change.key_id) return cannot_write();
    TRY(const Receipt receipt, parts_.tables.receipt("key-" + change.key_id));
    change.sequence = receipt.sequence;
    log_event(LogLevel::info, "signing_key_changed",
              {{"retired", change.retired}, {"key", change.key_id}, {"at", change.sequence}});
    return change;
}

std::string SqliteStore::sealed_context(const std::string& id, const std::string& member) const {
    return fmt::format("response {} {} {}", id.size(), id, member);
}

Task<Result<void>> SqliteStore::put_response(std::string id, std::string body, domain::Label label,
                                             std::string member) {
    const Retention& kept = parts_.options.retention[static_cast<std::size_t>(label.sensitivity)];
    if (!kept.responses) co_return Result<void>();
    std::string sealed = parts_.vault.seal(body, sealed_context(id, member));
    const std::int64_t expires = micros_of(system_clock().wall() + kept.responses_for);
    std::function<Result<void>(Tables&)> job =
        [id = std::move(id), member = std::move(member), expires, sealed = std::move(sealed)](
            Tables& tables) { return tables.put_response(id, member, expires, sealed); };
    co_return co_await ask(std::move(job));
}

Task<Result<std::string>> SqliteStore::get_response(std::string id, std::string member) {
    const std::string context = sealed_context(id, member);
    const std::int64_t now = micros_of(system_clock().wall());
    std::function<Result<std::string>(Tables&)> job =
        [id = std::move(id), member = std::move(member), now](Tables& tables) {
            return tables.response(id, member, now);
        };
    CO_TRY(const std::string sealed, co_await ask(std::move(job)));
    co_return parts_.vault.open(sealed, context);
}

Task<Result<void>> SqliteStore::delete_response(std::string id, std::string member) {
    std::function<Result<void>(Tables&)> job = [id = std::move(id),
                                                member = std::move(member)](Tables& tables) {
        return tables.delete_response(id, member);
    };
    co_return co_await ask(std::move(job));
}

Result<std::vector<KeyRow>> SqliteStore::keys() {
    auto promise = std::make_shared<std::promise<Result<std::vector<KeyRow>>>>();
    auto future = promise->get_future();
    if (!post([promise](Tables& tables) { promise->set_value(tables.keys()); }))
        return too_many_jobs();
    return future.get();
}

Task<Result<void>> SqliteStore::put_key(KeyRow row) {
    std::function<Result<void>(Tables&)> job = [row = std::move(row)](Tables& tables) {
        return tables.put_key(row);
    };
    co_return co_await ask(std::move(job));
}

Result<std::vector<EstimateRow>> SqliteStore::estimates() {
    auto promise = std::make_shared<std::promise<Result<std::vector<EstimateRow>>>>();
    auto future = promise->get_future();
    if (!post([promise](Tables& tables) { promise->set_value(tables.estimates()); }))
        return too_many_jobs();
    return future.get();
}

Task<Result<void>> SqliteStore::put_estimates(std::vector<EstimateRow> rows) {
    std::function<Result<void>(Tables&)> job = [rows = std::move(rows)](Tables& tables) {
        return tables.put_estimates(rows);
    };
    co_return co_await ask(std::move(job));
}

Task<Result<void>> SqliteStore::put_feedback(std::string trace_id, double score) {
    std::function<Result<void>(Tables&)> job = [trace_id = std::move(trace_id),
                                                score](Tables& tables) {
        return tables.put_feedback(trace_id, score, system_clock().wall());
    };
    co_return co_await ask(std::move(job));
}

Task<Result<std::uint64_t>> SqliteStore::expire() {
    auto promise = std::make_shared<Promise<Result<std::uint64_t>>>();
    begin_expiry(promise);
    co_return co_await promise->wait();
}

void SqliteStore::begin_expiry(std::shared_ptr<Promise<Result<std::uint64_t>>> promise) {
    auto expiry = std::make_shared<Expiry>();
    const WallTime now = system_clock().wall();
    expiry->now = micros_of(now);
    for (std::size_t i = 0; i < expiry->before.size(); ++i) {
        const WallTime before = now - parts_.options.retention[i].traces;
        expiry->before[i] = micros_of(before);
        expiry->days[i] = day_of(before);
    }
    expiry->promise = std::move(promise);
    if (!post([this, expiry](Tables& tables) { expire_slice(tables, expiry); }))
        expiry->promise->set(too_many_jobs());
}

void SqliteStore::expire_slice(Tables& tables, const std::shared_ptr<Expiry>& expiry) {
    const auto slice = tables.expire_traces(expiry->after, expiry->before);
    if (!slice) return expiry->promise->set(fail(slice.error()));
    expiry->rows += slice->rows;
    expiry->after = slice->next;
    // A slice at a time, so that rows of the ledger get in between.
    if (slice->next != 0 && post([this, expiry](Tables& next) { expire_slice(next, expiry); }))
        return;
    const auto rest = tables.expire_rest(expiry->days, expiry->now);
    if (!rest) return expiry->promise->set(fail(rest.error()));
    for (std::size_t i = 0; i < expiry->days.size(); ++i)
        conversations_.expire(static_cast<domain::Sensitivity>(i), expiry->days[i]);
    const auto prints = tables.expire_prints(expiry->days);
    if (!prints) return expiry->promise->set(fail(prints.error()));
    for (std::size_t i = 0; i < expiry->days.size() && *prints > 0; ++i)
        prints_.expire(static_cast<domain::Sensitivity>(i), expiry->days[i]);
    expiry->promise->set(expiry->rows + *rest + *prints);
}

bool SqliteStore::post(Job job) {
    {
        const std::scoped_lock lock(jobs_mutex_);
        if (stopping_ || jobs_.size() >= jobs_max) return false;
        jobs_.push_back(std::move(job));
    }
    ledger_.wake();
    return true;
}

std::deque<SqliteStore::Job> SqliteStore::take_jobs() {
    const std::scoped_lock lock(jobs_mutex_);
    return std::exchange(jobs_, {});
}

void SqliteStore::run_database() {
    MonoTime next_expiry = system_clock().now() + std::chrono::minutes(1);
    for (;;) {
        ledger_.wait(flush_patience);
        bool stop = false;
        {
            const std::scoped_lock lock(jobs_mutex_);
            stop = stopping_;
        }
        // Jobs first: they see everything that was appended before they were posted.
        const std::deque<Job> jobs = take_jobs();
        flush();
        for (const Job& job : jobs)
            job(parts_.tables);
        witness_.look(parts_.tables, stop);
        if (stop) return;
        if (failing_) std::this_thread::sleep_for(failure_pause);
        if (system_clock().now() < next_expiry) continue;
        next_expiry = system_clock().now() + std::chrono::hours(1);
        begin_expiry(std::make_shared<Promise<Result<std::uint64_t>>>());
    }
}

void SqliteStore::flush() {
    const bool left_over = failing_;
    flush_once();
    if (left_over && !failing_) flush_once();
}

void SqliteStore::flush_once() {
    const Result<void> stored = store_rows();
    if (!stored && !failing_)
        log_event(LogLevel::error, "store_flush_failed", {{"error", stored.error().message()}});
    if (stored && failing_) log_event(LogLevel::info, "store_flush_works_again");
    failing_ = !stored;
}

Result<void> SqliteStore::store_rows() {
    TRY(const std::vector<Row>* const rows, ledger_.take());
    if (rows->empty()) return {};
    TRY_DO(parts_.tables.store(*rows, conversations_, parts_.signer));
    if (parts_.options.durability == Durability::power) TRY_DO(ledger_.sync());
    ledger_.stored();
    return {};
}

}  // namespace molly::store::internal

namespace molly::store {

Result<std::unique_ptr<Store>> Store::open(const Options& options) {
    return internal::SqliteStore::open(options);
}

}  // namespace molly::store
