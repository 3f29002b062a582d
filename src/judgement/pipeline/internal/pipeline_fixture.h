#pragma once
// A whole pipeline among scripted targets, store and limits.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include "base/coroutine.h"
#include "pipeline/internal/scripted.h"

namespace molly::pipeline::scripted {

class PipelineTest : public ::testing::Test {
protected:
    ScriptedTarget& add(std::string id, Tier tier, double quality, Script script) {
        auto spec = std::make_shared<domain::TargetSpec>();
        spec->id = std::move(id);
        spec->tier = tier;
        spec->local = tier == Tier::t0;
        spec->quality = quality;
        spec->jurisdiction = jurisdiction;
        spec->endpoint.host = "10.0.0.7";
        spec->prices.per_answer_token = price;
        spec->confidence_min = confidence_min;
        spec->measure = measure;
        spec->specialists = specialists;
        spec->capabilities.logprobs = confidence_min > 0;
        spec->capabilities.embed = true;
        owned_.push_back(std::make_unique<ScriptedTarget>(std::move(spec), store));
        owned_.back()->scripts.push_back(std::move(script));
        return *owned_.back();
    }

    Pipeline& pipeline() {
        if (pipeline_) return *pipeline_;
        annotator_ = own_annotator ? std::move(own_annotator) : *annotate::Annotator::make(labels);
        policy_ = std::make_unique<policy::PolicyEngine>(rules);
        health_ = std::make_unique<router::Health>(routing, clock);
        std::vector<targets::Target*> all;
        for (const auto& target : owned_)
            all.push_back(target.get());
        Parts parts{*annotator_, *policy_, store,   members_, *health_,
                    routing,     all,      metrics, clock,    "key"};
        parts.estimates = estimates.get();
        parts.confidences = confidences.get();
        pipeline_ = std::make_unique<Pipeline>(std::move(parts), Options{});
        return *pipeline_;
    }

    domain::Request request(std::string text = "ciao") {
        domain::Request request;
        request.id = "r" + std::to_string(++asked_);
        request.dialect = "openai";
        request.model = "auto";
        request.stream = true;
        request.caller.member = "anna";
        request.caller.key_id = "k1";
        request.messages.push_back(domain::text_message(domain::Role::user, std::move(text)));
        request.received = clock.now();
        request.cancellation = std::make_shared<Cancellation>();
        return request;
    }

    Result<Answered> run(domain::Request request) {
        boost::asio::io_context io;
        running = &io;
        std::optional<Result<Answered>> result;
        Pipeline& pipe = pipeline();
        spawn(io.get_executor(),
              [&]() -> Task<void> { result = co_await pipe.run(std::move(request), key, edge); });
        io.run();
        EXPECT_EQ(ledger.open, 0);
        EXPECT_EQ(ledger.reserved, 0U);
        return *std::move(result);
    }

    const domain::Trace& trace() { return store.appended.back(); }
    /// `home answered, sample home rejected`
    std::string attempts() {
        std::string out;
        for (const domain::Attempt& line : trace().attempts) {
            const bool step = line.cause == domain::Cause::step;
            out += (out.empty() ? "" : ", ") +
                   (step ? std::string() : std::string(to_string(line.cause)) + " ") + line.target +
                   (line.adapter.empty() ? "" : "/" + line.adapter) + " " +
                   (line.failed     ? std::string(to_string(*line.failed))
                    : line.rejected ? "rejected"
                                    : "answered");
        }
        return out;
    }

    boost::asio::io_context* running = nullptr;  ///< where the latest request runs
    StoppedClock clock;
    MemoryStore store;
    Ledger ledger;
    Metrics metrics;
    annotate::Options labels;
    std::unique_ptr<annotate::Annotator> own_annotator;  ///< instead of one by `labels`
    policy::Options rules;
    router::Options routing;
    members::Key key;
    Edge edge;
    domain::Money price;
    double confidence_min = 0;                    ///< of the targets that are added from now on
    domain::ConfidenceMeasure measure;            ///< likewise
    std::vector<domain::Specialist> specialists;  ///< likewise
    std::unique_ptr<router::Estimates> estimates;
    std::unique_ptr<router::Confidences> confidences;
    std::string jurisdiction;  ///< of targets that are added from now on

private:
    int asked_ = 0;
    LedgerMembers members_{ledger};
    std::vector<std::unique_ptr<ScriptedTarget>> owned_;
    std::unique_ptr<annotate::Annotator> annotator_;
    std::unique_ptr<policy::PolicyEngine> policy_;
    std::unique_ptr<router::Health> health_;
    std::unique_ptr<Pipeline> pipeline_;
};

}  // namespace molly::pipeline::scripted
