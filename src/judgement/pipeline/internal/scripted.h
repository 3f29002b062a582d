#pragma once
// The cast of the pipeline's own tests: targets, store and limits that do as they are told.
#include <cmath>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/coroutine.h"
#include "base/promise.h"
#include "pipeline/pipeline.h"

namespace molly::pipeline::scripted {

using domain::Delta;
using domain::Tier;

class StoppedClock final : public Clock {
public:
    MonoTime now() const noexcept override { return now_; }
    WallTime wall() const noexcept override { return WallTime(std::chrono::hours(24)); }
    Task<void> sleep_until(MonoTime when) override {
        now_ = when;
        co_return;
    }
    void advance(Duration by) { now_ += by; }

private:
    MonoTime now_{std::chrono::hours(1)};
};

class MemoryStore final : public store::Store {
public:
    Task<Result<void>> depart(store::Departure departure) override {
        if (depart_fails) co_return fail(ErrorCode::exhausted, "the queue of writes is full");
        departures.push_back(std::move(departure));
        co_return Result<void>();
    }
    Task<Result<void>> append(domain::Trace trace) override {
        if (append_fails) co_return fail(ErrorCode::exhausted, "the queue of writes is full");
        if (!trace.conversation.empty()) labels[trace.conversation] = trace.label;
        if (trace.lowered) labels[trace.conversation].sensitivity = trace.lowered->to;
        appended.push_back(std::move(trace));
        co_return Result<void>();
    }
    std::optional<domain::Label> conversation_label(const std::string& name) const override {
        const auto found = labels.find(name);
        return found == labels.end() ? std::nullopt : std::optional(found->second);
    }
    Task<Result<std::vector<domain::Trace>>> traces(store::TraceQuery) override {
        co_return appended;
    }
    Task<Result<domain::Trace>> trace(std::string) override { co_return fail(none()); }
    Task<Result<store::Receipt>> receipt(std::string) override { co_return fail(none()); }
    bool knows_fingerprints() const noexcept override { return !prints.empty(); }
    std::optional<store::Recognised> recognise(std::span<const std::uint64_t> asked,
                                               std::uint32_t enough) const override {
        store::Recognised found;
        for (const std::uint64_t print : asked) {
            const auto known = prints.find(print);
            if (known == prints.end()) continue;
            found.label = known->second;
            ++found.count;
        }
        return found.count < enough ? std::nullopt : std::optional(found);
    }
    void remember(std::span<const std::uint64_t> seen, const domain::Label& label) override {
        for (const std::uint64_t print : seen)
            prints[print] = label;
    }
    Task<Result<store::KeyChange>> rotate_key() override { co_return fail(none()); }
    Task<Result<void>> put_response(std::string, std::string, domain::Label, std::string) override {
        co_return fail(none());
    }
    Task<Result<std::string>> get_response(std::string, std::string) override {
        co_return fail(none());
    }
    Task<Result<void>> delete_response(std::string, std::string) override {
        co_return fail(none());
    }
    Result<std::vector<store::KeyRow>> keys() override { return {}; }
    Task<Result<void>> put_key(store::KeyRow) override { co_return fail(none()); }
    Result<std::vector<store::EstimateRow>> estimates() override { return estimate_rows; }
    Task<Result<void>> put_estimates(std::vector<store::EstimateRow> rows) override {
        estimate_rows.insert(estimate_rows.end(), rows.begin(), rows.end());
        co_return Result<void>();
    }
    Task<Result<void>> put_feedback(std::string trace_id, double /*score*/) override {
        if (judged.insert(std::move(trace_id)).second) co_return Result<void>();
        co_return fail(ErrorCode::conflict, "judged");
    }
    Result<domain::Money> spent(const std::string&, WallTime) override { return domain::Money{}; }
    Task<Result<std::uint64_t>> expire() override { co_return 0U; }

    bool depart_fails = false;
    bool append_fails = false;
    std::vector<store::Departure> departures;
    std::vector<domain::Trace> appended;
    std::vector<store::EstimateRow> estimate_rows;
    std::set<std::string> judged;
    std::map<std::string, domain::Label> labels;
    std::map<std::uint64_t, domain::Label> prints;

private:
    static Error none() { return {ErrorCode::not_found, "not kept by this store"}; }
};

/// What the limits of the one key hold at a moment.
struct Ledger {
    std::uint64_t reserved = 0;
    std::uint64_t settled = 0;
    domain::Money cost;
    domain::Money cost_asked;  // room for this much was wanted last
    int open = 0;
    bool refuses = false;
    std::uint64_t tokens_max = ~std::uint64_t{0};
    std::function<void()> on_reserve;
};

class LedgerReservation final : public members::Reservation {
public:
    LedgerReservation(Ledger& ledger, std::uint64_t tokens) : ledger_(ledger), tokens_(tokens) {
        ledger_.reserved += tokens;
        ++ledger_.open;
    }
    LedgerReservation(const LedgerReservation&) = delete;
    LedgerReservation& operator=(const LedgerReservation&) = delete;
    LedgerReservation(LedgerReservation&&) = delete;
    LedgerReservation& operator=(LedgerReservation&&) = delete;
    ~LedgerReservation() override {
        ledger_.reserved -= tokens_;
        --ledger_.open;
    }
    void settle(std::uint64_t tokens, domain::Money cost) override {
        ledger_.settled += tokens;
        ledger_.cost += cost;
    }

private:
    Ledger& ledger_;
    std::uint64_t tokens_;
};

class LedgerMembers final : public members::Members {
public:
    explicit LedgerMembers(Ledger& ledger) : ledger_(ledger) {}
    Result<std::unique_ptr<members::Reservation>> reserve(const members::Key&, std::uint64_t tokens,
                                                          domain::Money cost) override {
        ledger_.cost_asked = cost;
        if (ledger_.on_reserve) ledger_.on_reserve();
        if (ledger_.refuses) return fail(ErrorCode::rate_limited, "one request a minute");
        if (tokens > ledger_.tokens_max) return fail(ErrorCode::exhausted, "too many tokens");
        return std::make_unique<LedgerReservation>(ledger_, tokens);
    }
    Result<members::Key> authenticate(std::string_view) const override { return members::Key{}; }
    Task<Result<members::NewKey>> create(const members::Key*, members::Scope) override {
        co_return fail(ErrorCode::denied, "no");
    }
    Task<Result<void>> revoke(const members::Key&, std::string) override {
        co_return Result<void>();
    }
    std::vector<members::Key> list() const override { return {}; }

private:
    Ledger& ledger_;
};

/// One answer of a scripted target.
struct Script {
    std::shared_ptr<Promise<bool>> waits;  ///< nothing is said before that is set; null: at once
    std::vector<Delta> deltas;
    std::optional<Error> error;
    targets::Report report;
    domain::Response response;
};

class ScriptedTarget final : public targets::Target {
public:
    ScriptedTarget(std::shared_ptr<const domain::TargetSpec> target, MemoryStore& store)
        : Target(std::move(target)), store_(store) {}

    Result<std::string> adapter(std::string_view asked) const override {
        const auto known = versions.find(std::string(asked));
        if (known == versions.end()) return Target::adapter(asked);
        return known->second;
    }
    Result<domain::Label> adapter_label(std::string_view asked) const override {
        TRY(const std::string version, adapter(asked));
        return adapter_labels.at(version);
    }
    std::uint64_t adapters_version() const override { return ++versions_asked; }  // any moment
    std::uint32_t queue_depth() const noexcept override { return 0; }
    Task<Result<void>> probe(const policy::Permit&) override { co_return Result<void>(); }

    std::deque<Script> scripts;  // the last one stays
    std::function<void()> on_attempt;
    std::function<void()> on_given_up;                    ///< while an attempt waits
    std::map<std::string, std::string> versions;          // of adapters, by name and by themselves
    std::map<std::string, domain::Label> adapter_labels;  // by version
    mutable std::uint64_t versions_asked = 0;
    int attempts = 0;
    std::vector<domain::Request> seen;

private:
    Task<Result<domain::Response>> answer(policy::Dispatch dispatch, targets::DeltaSink& sink,
                                          targets::Report& report) override {
        co_return co_await play(dispatch.request(), sink, report);
    }
    Task<Result<domain::Response>> answer_redacted(policy::Redacted payload,
                                                   targets::DeltaSink& sink,
                                                   targets::Report& report) override {
        co_return co_await play(payload.request(), sink, report);
    }
    Task<Result<domain::Response>> play(const domain::Request& request, targets::DeltaSink& sink,
                                        targets::Report& report) {
        ++attempts;
        seen.push_back(request);
        if (spec().tier != Tier::t0) {
            EXPECT_FALSE(store_.departures.empty());
            EXPECT_EQ(store_.departures.back().trace_id, request.id);
            EXPECT_EQ(store_.departures.back().target, spec().id);
        }
        if (on_attempt) on_attempt();
        const Script script = scripts.front();
        if (scripts.size() > 1) scripts.pop_front();
        report = script.report;
        const CancelSubscription given_up(request.cancellation, on_given_up ? on_given_up : [] {});
        if (script.waits) co_await script.waits->wait();
        if (request.cancellation && request.cancellation->cancelled() && script.waits)
            co_return fail(ErrorCode::cancelled, "given up");
        for (const Delta& delta : script.deltas)
            CO_TRY_DO(co_await sink.write(delta));
        if (script.error) co_return fail(*script.error);
        co_return script.response;
    }

    MemoryStore& store_;
};

class Edge final : public AnswerSink {
public:
    Task<Result<void>> begin(const Served& to) override {
        served.push_back(to);
        co_return Result<void>();
    }
    Task<Result<void>> write(const Delta& delta) override {
        if (gone) co_return fail(ErrorCode::cancelled, "the caller left");
        text += delta.text;
        ++deltas;
        logprobs += delta.logprobs.size();
        co_return Result<void>();
    }
    int deltas = 0;
    std::size_t logprobs = 0;
    std::vector<Served> served;
    std::string text;
    bool gone = false;
};

inline Delta piece(std::string text) {
    Delta delta;
    delta.text = std::move(text);
    return delta;
}

inline Script says(std::string text) {
    Script script;
    script.deltas.push_back(piece(std::move(text)));
    Delta last;
    last.finish = domain::FinishReason::stop;
    script.deltas.push_back(last);
    return script;
}

/// Says `text` in two pieces, each token with this probability.
inline Script says_sure(std::string text, double probability) {
    Script script;
    const auto logprob = static_cast<float>(std::log(probability));
    for (std::string part : {text.substr(0, text.size() / 2), text.substr(text.size() / 2)}) {
        script.deltas.push_back(piece(part));
        script.deltas.back().logprobs.push_back({.token = part, .logprob = logprob, .top = {}});
    }
    Delta last;
    last.finish = domain::FinishReason::stop;
    script.deltas.push_back(last);
    return script;
}

inline Script fails(ErrorCode code, bool accepted = false) {
    Script script;
    script.error = Error(code, "scripted");
    script.report.body_accepted = accepted;
    return script;
}

}  // namespace molly::pipeline::scripted
