#pragma once
// The store: hot writes are committed by the ledger on the calling thread, everything else runs on
// one database thread, which also moves the ledger's rows into SQLite.
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "base/promise.h"
#include "store/internal/conversations.h"
#include "store/internal/folder_lock.h"
#include "store/internal/ledger.h"
#include "store/internal/syncer.h"
#include "store/internal/tables.h"
#include "store/internal/witness_writer.h"
#include "store/store.h"

namespace molly::store::internal {

class SqliteStore final : public Store {
public:
    static Result<std::unique_ptr<Store>> open(const Options& options);
    SqliteStore(const SqliteStore&) = delete;
    SqliteStore& operator=(const SqliteStore&) = delete;
    SqliteStore(SqliteStore&&) = delete;
    SqliteStore& operator=(SqliteStore&&) = delete;
    ~SqliteStore() override;

    Task<Result<void>> depart(Departure departure) override;
    Task<Result<void>> append(domain::Trace trace) override;
    Task<Result<std::vector<domain::Trace>>> traces(TraceQuery query) override;
    Task<Result<domain::Trace>> trace(std::string id) override;
    Task<Result<Receipt>> receipt(std::string id) override;
    Task<Result<KeyChange>> rotate_key() override;
    std::optional<domain::Label> conversation_label(const std::string& conversation) const override;
    bool knows_fingerprints() const noexcept override { return !prints_.empty(); }
    std::optional<Recognised> recognise(std::span<const std::uint64_t> prints,
                                        std::uint32_t enough) const override {
        return prints_.find(prints, enough);
    }
    void remember(std::span<const std::uint64_t> prints, const domain::Label& label) override;
    Task<Result<void>> put_response(std::string id, std::string body, domain::Label label,
                                    std::string member) override;
    Task<Result<std::string>> get_response(std::string id, std::string member) override;
    Task<Result<void>> delete_response(std::string id, std::string member) override;
    Result<std::vector<KeyRow>> keys() override;
    Task<Result<void>> put_key(KeyRow row) override;
    Result<std::vector<EstimateRow>> estimates() override;
    Task<Result<void>> put_estimates(std::vector<EstimateRow> rows) override;
    Task<Result<void>> put_feedback(std::string trace_id, double score) override;
    Result<domain::Money> spent(const std::string& key_id, WallTime since) override;
    Task<Result<std::uint64_t>> expire() override;

private:
    using Job = std::function<void(Tables&)>;
    struct Expiry;
    /// What `open` gathers before the threads start.
    struct Parts {
        Options options;
        FolderLock lock;
        Signer signer;
        seal::Vault vault;
        Tables tables;
        seal::Hash journal_key{};
    };

    SqliteStore(Parts parts, Journal journal);
    Result<void> load();
    Result<void> recover();
    void start();
    Result<void> commit(const domain::Trace& trace);

    /// Runs `job` on the database thread, after everything appended so far is stored there.
    template <class T>
    Task<Result<T>> ask(std::function<Result<T>(Tables&)> job);
    bool post(Job job);
    void run_database();
    std::deque<Job> take_jobs();
    void flush();
    void flush_once();
    Result<void> store_rows();
    Result<KeyChange> change_key();
    void begin_expiry(std::shared_ptr<Promise<Result<std::uint64_t>>> promise);
    void expire_slice(Tables& tables, const std::shared_ptr<Expiry>& expiry);
    void add_spending(const std::string& key_id, std::int64_t day, domain::Money cost);
    std::string sealed_context(const std::string& id, const std::string& member) const;

    Parts parts_;
    Ledger ledger_;
    Conversations conversations_;
    FingerprintIndex prints_;
    Database lookup_;  // reads conversations that memory could not hold, under their mutex
    mutable std::mutex spending_mutex_;
    Spending spending_;
    std::mutex jobs_mutex_;
    std::deque<Job> jobs_;
    bool stopping_ = false;
    bool failing_ = false;   // the last flush; the database thread's
    WitnessWriter witness_;  // the database thread's
    std::unique_ptr<Syncer> syncer_;
    std::thread database_thread_;
};

}  // namespace molly::store::internal
