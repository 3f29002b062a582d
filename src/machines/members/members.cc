#include "members/members.h"

#include <algorithm>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include <fmt/format.h>

#include "base/coroutine.h"
#include "base/log.h"
#include "members/internal/limits.h"
#include "members/internal/scope_check.h"
#include "seal/seal.h"
#include "store/trace_text.h"

namespace molly::members {
namespace {

using internal::Held;
using internal::Meter;
using internal::Meters;

constexpr std::string_view prefix = "molly-";
constexpr std::size_t random_characters = 40;
constexpr std::size_t hint_characters = 4;

std::unexpected<Error> unauthenticated(std::string english, std::string italian,
                                       std::string reason) {
    return fail(Error(ErrorCode::unauthenticated, std::move(english))
                    .italian(std::move(italian))
                    .reason(std::move(reason)));
}

Result<void> check_form(std::string_view text) {
    if (text.empty()) {
        return unauthenticated("no key was sent; send the header `Authorization: Bearer molly-...`",
                               "nessuna chiave inviata; inviare l'intestazione `Authorization: "
                               "Bearer molly-...`",
                               "key_missing");
    }
    if (text.starts_with(prefix) && text.size() == prefix.size() + random_characters) return {};
    return unauthenticated(
        "this is no key of Molly: they begin with `molly-` and have 40 characters "
        "more",
        "questa non è una chiave di Molly: iniziano con `molly-` e hanno altri "
        "40 caratteri",
        "key_malformed");
}

/// One key and what it needs at every request. Everything but `revoked` stays as it is.
struct Entry {
    Key key;
    std::string hash;  // hex
    Meters meters;     // its own and its ancestors', where they have limits
    std::shared_ptr<Meter> meter = std::make_shared<Meter>();
};
using EntryPtr = std::shared_ptr<Entry>;

store::KeyRow row_of(const Entry& entry) {
    return {.id = entry.key.id,
            .parent = entry.key.parent,
            .hash = entry.hash,
            .hint = entry.key.hint,
            .body = to_text(entry.key.scope),
            .created = entry.key.created,
            .revoked = entry.key.revoked};
}

EntryPtr entry_of(Key key, std::string hash) {
    auto entry = std::make_shared<Entry>();
    entry->meter->requests_per_minute = key.scope.requests_per_minute;
    entry->meter->tokens_per_minute = key.scope.tokens_per_minute;
    entry->meter->parallel_max = key.scope.parallel_max;
    entry->meter->budget_per_month = key.scope.budget_per_month;
    entry->hash = std::move(hash);
    entry->key = std::move(key);
    return entry;
}

/// One lock for all meters: it is held for less than a microsecond, and not at all by keys without
/// limits.
struct LimitBook {
    std::mutex mutex;
};

class MeteredReservation final : public Reservation {
public:
    MeteredReservation(std::shared_ptr<LimitBook> book, Meters meters, Held held, Clock& clock)
        : book_(std::move(book)), meters_(std::move(meters)), held_(held), clock_(clock) {}
    MeteredReservation(const MeteredReservation&) = delete;
    MeteredReservation& operator=(const MeteredReservation&) = delete;
    MeteredReservation(MeteredReservation&&) = delete;
    MeteredReservation& operator=(MeteredReservation&&) = delete;
    ~MeteredReservation() override {
        if (settled_ || meters_.empty()) return;
        const std::scoped_lock lock(book_->mutex);
        internal::give_back(meters_, held_);
    }

    void settle(std::uint64_t tokens, domain::Money cost) override {
        if (settled_ || meters_.empty()) return;
        settled_ = true;
        const std::scoped_lock lock(book_->mutex);
        internal::settle(meters_, held_, tokens, cost, internal::moment_of(clock_));
    }

private:
    std::shared_ptr<LimitBook> book_;
    Meters meters_;
    Held held_;
    Clock& clock_;
    bool settled_ = false;
};

class StoredMembers final : public Members {
public:
    StoredMembers(store::Store& store, Clock& clock) : store_(store), clock_(clock) {}

    Result<void> load();
    Result<Key> authenticate(std::string_view text) const override;
    Result<std::unique_ptr<Reservation>> reserve(const Key& key, std::uint64_t tokens,
                                                 domain::Money cost) override;
    Task<Result<NewKey>> create(const Key* maker, Scope scope) override;
    Task<Result<void>> revoke(const Key& by, std::string id) override;
    std::vector<Key> list() const override;

private:
    Result<void> admit(const Key* maker, const Scope& scope) const;
    bool has_admin() const;
    EntryPtr find(const std::string& id) const;
    void add(const EntryPtr& entry);
    void gather_meters(Entry& entry) const;
    void remove(const Entry& entry);
    void add_spent(const Entry& entry);
    bool descends(const Entry& entry, const std::string& ancestor) const;
    std::vector<EntryPtr> mark_revoked(const std::string& id, WallTime now);

    store::Store& store_;
    Clock& clock_;
    std::shared_ptr<LimitBook> book_ = std::make_shared<LimitBook>();
    mutable std::shared_mutex mutex_;
    std::unordered_map<std::string, EntryPtr> by_hash_;
    std::unordered_map<std::string, EntryPtr> by_id_;
};

Result<void> StoredMembers::load() {
    TRY(std::vector<store::KeyRow> rows, store_.keys());
    for (store::KeyRow& row : rows) {
        auto scope = scope_from(row.body);
        if (!scope) {
            return fail(
                Error(ErrorCode::corrupt,
                      fmt::format("the stored key {} is not readable ({}); restore molly.db "
                                  "from a backup",
                                  row.id, scope.error().message()))
                    .italian(fmt::format("la chiave salvata {} non è leggibile; "
                                         "ripristinare molly.db da una copia",
                                         row.id)));
        }
        add(entry_of({.id = std::move(row.id),
                      .parent = std::move(row.parent),
                      .hint = std::move(row.hint),
                      .scope = *std::move(scope),
                      .created = row.created,
                      .revoked = row.revoked},
                     std::move(row.hash)));
    }
    for (const auto& [id, entry] : by_id_) {
        gather_meters(*entry);
        add_spent(*entry);
    }
    return {};
}

void StoredMembers::add_spent(const Entry& entry) {
    const auto spent = store_.spent(entry.key.id, internal::month_start(clock_.wall()));
    const internal::Moment now = internal::moment_of(clock_);
    for (const auto& meter : entry.meters) {
        meter->month = now.month;
        if (spent) meter->spent += *spent;
    }
}

void StoredMembers::add(const EntryPtr& entry) {
    by_hash_[entry->hash] = entry;
    by_id_[entry->key.id] = entry;
}

void StoredMembers::gather_meters(Entry& entry) const {
    if (entry.meter->limited()) entry.meters.push_back(entry.meter);
    for (EntryPtr at = find(entry.key.parent); at; at = find(at->key.parent)) {
        if (at->meter->limited()) entry.meters.push_back(at->meter);
    }
}

void StoredMembers::remove(const Entry& entry) {
    by_hash_.erase(entry.hash);
    by_id_.erase(entry.key.id);
}

EntryPtr StoredMembers::find(const std::string& id) const {
    const auto found = by_id_.find(id);
    return found == by_id_.end() ? nullptr : found->second;
}

Result<Key> StoredMembers::authenticate(std::string_view text) const {
    TRY_DO(check_form(text));
    const std::string hash = seal::to_hex(seal::sha256(text));
    const std::shared_lock lock(mutex_);
    const auto found = by_hash_.find(hash);
    if (found == by_hash_.end()) {
        return unauthenticated(
            "this key is not known here; check that it is whole, or make one: "
            "molly keys create",
            "questa chiave non è conosciuta qui; controllare che sia intera, o "
            "crearne una: molly keys create",
            "key_unknown");
    }
    const Key& key = found->second->key;
    if (key.revoked) {
        return unauthenticated(
            fmt::format("the key ending in {} was revoked; ask for another", key.hint),
            fmt::format("la chiave che termina con {} è stata revocata; "
                        "chiederne un'altra",
                        key.hint),
            "key_revoked");
    }
    if (key.scope.expires && *key.scope.expires <= clock_.wall()) {
        const std::string when = store::to_text(*key.scope.expires);
        return unauthenticated(
            fmt::format("the key ending in {} expired at {}; ask for another", key.hint, when),
            fmt::format("la chiave che termina con {} è scaduta il {}; chiederne un'altra",
                        key.hint, when),
            "key_expired");
    }
    return key;
}

Result<std::unique_ptr<Reservation>> StoredMembers::reserve(const Key& key, std::uint64_t tokens,
                                                            domain::Money cost) {
    EntryPtr entry;
    {
        const std::shared_lock lock(mutex_);
        entry = find(key.id);
        if (!entry || entry->key.revoked)
            return unauthenticated("the key was revoked", "la chiave è stata revocata",
                                   "key_revoked");
    }
    Held held;
    if (!entry->meters.empty()) {
        const std::scoped_lock lock(book_->mutex);
        TRY(held, internal::take(entry->meters, tokens, cost, internal::moment_of(clock_)));
    }
    return std::make_unique<MeteredReservation>(book_, entry->meters, held, clock_);
}

bool StoredMembers::has_admin() const {
    return std::any_of(by_id_.begin(), by_id_.end(), [this](const auto& entry) {
        const Key& key = entry.second->key;
        return key.scope.admin && !key.revoked &&
               !(key.scope.expires && *key.scope.expires <= clock_.wall());
    });
}

Result<void> StoredMembers::admit(const Key* maker, const Scope& scope) const {
    TRY_DO(internal::check_sense(scope));
    if (maker == nullptr) {
        if (scope.admin && !has_admin()) return {};
        return fail(Error(ErrorCode::denied,
                          "without a key only the first admin key can be made; use an admin key")
                        .italian("senza chiave si può creare solo la prima chiave di "
                                 "amministrazione; usare una chiave di amministrazione")
                        .reason("admin_exists"));
    }
    const EntryPtr entry = find(maker->id);
    if (!entry || entry->key.revoked)
        return unauthenticated("the key was revoked", "la chiave è stata revocata", "key_revoked");
    return internal::check_narrower(scope, entry->key.scope);
}

Task<Result<NewKey>> StoredMembers::create(const Key* maker, Scope scope) {
    NewKey made;
    made.text = fmt::format("{}{}", prefix, seal::random_token(random_characters));
    made.key.id = fmt::format("key_{}", seal::random_token(16));
    if (maker != nullptr) made.key.parent = maker->id;
    made.key.hint = made.text.substr(made.text.size() - hint_characters);
    made.key.scope = std::move(scope);
    // To the precision that the store keeps.
    made.key.created = std::chrono::floor<std::chrono::microseconds>(clock_.wall());
    const EntryPtr entry = entry_of(made.key, seal::to_hex(seal::sha256(made.text)));
    {
        const std::scoped_lock lock(mutex_);
        CO_TRY_DO(admit(maker, made.key.scope));
        gather_meters(*entry);
        add(entry);  // at once, so that two first admin keys are impossible
    }
    store::KeyRow row = row_of(*entry);
    Result<void> stored = co_await store_.put_key(std::move(row));
    if (!stored) {
        const std::scoped_lock lock(mutex_);
        remove(*entry);
        co_return fail(std::move(stored).error());
    }
    log_event(LogLevel::info, "key_created", {{"key", made.key.id}, {"parent", made.key.parent}});
    co_return made;
}

bool StoredMembers::descends(const Entry& entry, const std::string& ancestor) const {
    for (const Entry* at = &entry; at != nullptr; at = find(at->key.parent).get()) {
        if (at->key.id == ancestor) return true;
        if (at->key.parent.empty()) return false;
    }
    return false;
}

std::vector<EntryPtr> StoredMembers::mark_revoked(const std::string& id, WallTime now) {
    std::vector<EntryPtr> revoked;
    for (const auto& [key_id, entry] : by_id_) {
        if (entry->key.revoked || !descends(*entry, id)) continue;
        entry->key.revoked = now;
        revoked.push_back(entry);
    }
    return revoked;
}

Task<Result<void>> StoredMembers::revoke(const Key& by, std::string id) {
    const WallTime now = std::chrono::floor<std::chrono::microseconds>(clock_.wall());
    std::vector<store::KeyRow> rows;
    {
        const std::scoped_lock lock(mutex_);
        const EntryPtr entry = find(id);
        if (!entry) {
            co_return fail(
                Error(ErrorCode::not_found, "there is no key with this id; molly keys lists them")
                    .italian("nessuna chiave con questo id; molly keys le elenca"));
        }
        if (!by.scope.admin && !descends(*entry, by.id)) {
            co_return fail(
                Error(ErrorCode::denied, "only an admin key may revoke the keys of others")
                    .italian("solo una chiave di amministrazione può revocare le "
                             "chiavi altrui"));
        }
        for (const EntryPtr& revoked : mark_revoked(id, now))
            rows.push_back(row_of(*revoked));
    }
    for (store::KeyRow& row : rows) {
        CO_TRY_DO(co_await store_.put_key(std::move(row)));
    }
    log_event(LogLevel::info, "key_revoked", {{"key", id}, {"with_children", rows.size()}});
    co_return Result<void>();
}

std::vector<Key> StoredMembers::list() const {
    std::vector<Key> keys;
    {
        const std::shared_lock lock(mutex_);
        for (const auto& [id, entry] : by_id_)
            keys.push_back(entry->key);
    }
    std::sort(keys.begin(), keys.end(), [](const Key& a, const Key& b) {
        return std::tie(a.created, a.id) < std::tie(b.created, b.id);
    });
    return keys;
}

}  // namespace

Result<std::unique_ptr<Members>> Members::open(store::Store& store, Clock& clock) {
    auto members = std::make_unique<StoredMembers>(store, clock);
    TRY_DO(members->load());
    return members;
}

domain::Caller caller_of(const Key& key) {
    return {.member = key.scope.member,
            .key_id = key.id,
            .app = key.scope.app,
            .lowest_class = key.scope.lowest_class,
            .default_class = key.scope.default_class,
            .tiers = key.scope.tiers,
            .models = key.scope.models};
}

}  // namespace molly::members
