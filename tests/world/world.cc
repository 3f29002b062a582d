#include <utility>

#include "world/clock.h"
#include "world/store.h"

namespace molly::world {

Task<void> SimulatedClock::sleep_until(MonoTime when) {
    const auto wake = std::make_shared<Promise<bool>>();
    sleepers_.emplace(when, wake);
    co_await wake->wait();
}

bool SimulatedClock::advance() {
    if (sleepers_.empty()) return false;
    const auto first = sleepers_.begin();
    now_ = std::max(now_, first->first);
    const auto wake = first->second;
    sleepers_.erase(first);
    wake->set(true);
    return true;
}

Task<Result<void>> MemoryStore::write() {
    if (delay) co_await clock_.sleep(delay());
    if (refuses && refuses())
        co_return fail(ErrorCode::exhausted, "the queue of the store is full; try again");
    co_return Result<void>();
}

Task<Result<void>> MemoryStore::depart(store::Departure departure) {
    CO_TRY_DO(co_await write());
    if (!forgets_departures) departures.push_back(std::move(departure));
    co_return Result<void>();
}

Task<Result<void>> MemoryStore::append(domain::Trace trace) {
    CO_TRY_DO(co_await write());
    if (!trace.conversation.empty()) {
        const auto [known, fresh] = labels_.emplace(trace.conversation, trace.label);
        if (!fresh && !trace.lowered) known->second = join(known->second, trace.label);
        if (trace.lowered) known->second.sensitivity = trace.lowered->to;
    }
    if (!forgets_traces) committed.push_back(std::move(trace));
    co_return Result<void>();
}

std::optional<domain::Label> MemoryStore::conversation_label(const std::string& name) const {
    const auto known = labels_.find(name);
    return known == labels_.end() ? std::nullopt : std::optional(known->second);
}

Task<Result<std::vector<domain::Trace>>> MemoryStore::traces(store::TraceQuery /*query*/) {
    co_return committed;
}

Task<Result<domain::Trace>> MemoryStore::trace(std::string id) {
    for (const domain::Trace& trace : committed) {
        if (trace.id == id) co_return trace;
    }
    co_return fail(ErrorCode::not_found, "no such trace");
}

Task<Result<store::Receipt>> MemoryStore::receipt(std::string /*id*/) {
    co_return fail(ErrorCode::not_found, "this store makes no receipts");
}
std::optional<store::Recognised> MemoryStore::recognise(std::span<const std::uint64_t> prints,
                                                        std::uint32_t enough) const {
    store::Recognised found;
    for (const std::uint64_t print : prints) {
        const auto known = prints_.find(print);
        if (known == prints_.end()) continue;
        found.label = found.count == 0 ? known->second : join(found.label, known->second);
        ++found.count;
    }
    return found.count < enough ? std::nullopt : std::optional(found);
}

void MemoryStore::remember(std::span<const std::uint64_t> prints, const domain::Label& label) {
    for (const std::uint64_t print : prints)
        prints_[print] = label;
}

Task<Result<store::KeyChange>> MemoryStore::rotate_key() {
    co_return fail(ErrorCode::unsupported, "this store signs nothing");
}

Task<Result<void>> MemoryStore::put_response(std::string /*id*/, std::string /*body*/,
                                             domain::Label /*label*/, std::string /*member*/) {
    co_return co_await write();
}

Task<Result<std::string>> MemoryStore::get_response(std::string /*id*/, std::string /*member*/) {
    co_return fail(ErrorCode::not_found, "this store keeps no responses");
}

Task<Result<void>> MemoryStore::delete_response(std::string /*id*/, std::string /*member*/) {
    co_return fail(ErrorCode::not_found, "this store keeps no responses");
}

Task<Result<void>> MemoryStore::put_key(store::KeyRow row) {
    CO_TRY_DO(co_await write());
    key_rows.push_back(std::move(row));
    co_return Result<void>();
}

Result<domain::Money> MemoryStore::spent(const std::string& key_id, WallTime since) {
    domain::Money sum;
    for (const domain::Trace& trace : committed) {
        if (trace.key_id == key_id && trace.time >= since) sum += trace.cost;
    }
    return sum;
}

Task<Result<std::uint64_t>> MemoryStore::expire() {
    co_return std::uint64_t{0};
}

}  // namespace molly::world
