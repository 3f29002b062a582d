#pragma once
// A store in memory: what it has committed is what a crash would leave. One thread.
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "store/store.h"
#include "world/clock.h"

namespace molly::world {

class MemoryStore final : public store::Store {
public:
    explicit MemoryStore(SimulatedClock& clock) : clock_(clock) {}

    Task<Result<void>> depart(store::Departure departure) override;
    Task<Result<void>> append(domain::Trace trace) override;
    Task<Result<std::vector<domain::Trace>>> traces(store::TraceQuery query) override;
    Task<Result<domain::Trace>> trace(std::string id) override;
    Task<Result<store::Receipt>> receipt(std::string id) override;
    Task<Result<store::KeyChange>> rotate_key() override;
    std::optional<domain::Label> conversation_label(const std::string& name) const override;
    bool knows_fingerprints() const noexcept override { return !prints_.empty(); }
    std::optional<store::Recognised> recognise(std::span<const std::uint64_t> prints,
                                               std::uint32_t enough) const override;
    void remember(std::span<const std::uint64_t> prints, const domain::Label& label) override;
    Task<Result<void>> put_response(std::string id, std::string body, domain::Label label,
                                    std::string member) override;
    Task<Result<std::string>> get_response(std::string id, std::string member) override;
    Task<Result<void>> delete_response(std::string id, std::string member) override;
    Result<std::vector<store::KeyRow>> keys() override { return key_rows; }
    Task<Result<void>> put_key(store::KeyRow row) override;
    Result<std::vector<store::EstimateRow>> estimates() override { return estimate_rows; }
    Task<Result<void>> put_estimates(std::vector<store::EstimateRow> rows) override {
        estimate_rows.insert(estimate_rows.end(), rows.begin(), rows.end());
        co_return Result<void>();
    }
    Task<Result<void>> put_feedback(std::string trace_id, double /*score*/) override {
        if (judged.insert(std::move(trace_id)).second) co_return Result<void>();
        co_return fail(ErrorCode::conflict, "judged");
    }
    Result<domain::Money> spent(const std::string& key_id, WallTime since) override;
    Task<Result<std::uint64_t>> expire() override;

    /// How long the next write takes, and whether it is refused.
    std::function<Duration()> delay;
    std::function<bool()> refuses;
    bool forgets_departures = false;  ///< a planted fault: says committed and commits nothing
    bool forgets_traces = false;      ///< the same

    std::vector<store::Departure> departures;  ///< in the order of their commit
    std::vector<domain::Trace> committed;
    std::vector<store::KeyRow> key_rows;
    std::vector<store::EstimateRow> estimate_rows;
    std::set<std::string> judged;

private:
    Task<Result<void>> write();

    SimulatedClock& clock_;
    std::map<std::string, domain::Label> labels_;
    std::map<std::uint64_t, domain::Label> prints_;
};

}  // namespace molly::world
