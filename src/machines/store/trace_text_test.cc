#include "store/trace_text.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "store/internal/receipt_text.h"
#include "store/internal/test_store.h"

namespace molly::store {
namespace {

using testing::full_trace;

TEST(TraceText, EveryMemberComesBack) {
    const domain::Trace trace = full_trace("a1");
    const std::string text = to_text(trace);
    const auto back = trace_from(text);
    ASSERT_TRUE(back.has_value());
    EXPECT_EQ(to_text(*back), text);
    EXPECT_EQ(back->time, trace.time);
    EXPECT_EQ(back->label, full_trace("a1").label);
    EXPECT_EQ(back->decision.permitted, full_trace("a1").decision.permitted);
    EXPECT_DOUBLE_EQ(back->decision.candidates.at(0).quality, 0.1);
    EXPECT_EQ(back->attempts.at(0).failed, ErrorCode::unavailable);
    EXPECT_EQ(back->attempts.at(1).usage, full_trace("a1").usage);
    EXPECT_EQ(back->finish, domain::FinishReason::length);
    EXPECT_EQ(back->app, "curl \"8\"");
}

TEST(TraceText, AnEmptyTraceComesBack) {
    const std::string text = to_text(domain::Trace{});
    const auto back = trace_from(text);
    ASSERT_TRUE(back.has_value());
    EXPECT_EQ(to_text(*back), text);
}

TEST(TraceText, DamageIsCorruptAndNeverLowersAClass) {
    EXPECT_EQ(trace_from("{\"id\":").error().code(), ErrorCode::corrupt);
    EXPECT_EQ(trace_from("[]").error().code(), ErrorCode::corrupt);
    EXPECT_EQ(label_from("{\"class\":\"pubic\"}")->sensitivity, domain::Sensitivity::secret);
    EXPECT_EQ(label_from("{}")->sensitivity, domain::Sensitivity::secret);
}

TEST(TraceText, LabelsComeBack) {
    for (const domain::Residency& residency :
         {domain::Residency(), domain::Residency(std::set<std::string, std::less<>>{}),
          domain::Residency({"EU", "home-lan"})}) {
        const domain::Label label{domain::Sensitivity::secret, residency, {"kb"}};
        EXPECT_EQ(label_from(to_text(label)).value(), label);
    }
}

TEST(TraceText, TimeIsIso8601) {
    EXPECT_EQ(to_text(WallTime(std::chrono::microseconds(1'764'488'750'123'456))),
              "2025-11-30T07:45:50.123456Z");
}

TEST(ReceiptText, SaysWhatWasRedactedByKindAndCount) {
    domain::Trace trace = full_trace("a1");
    trace.attempts[0].redactions = {{domain::FindingKind::iban, 2},
                                    {domain::FindingKind::email, 1}};
    trace.attempts[1].redactions = {{domain::FindingKind::iban, 2}};
    std::string body;
    internal::append_receipt(body, trace);
    EXPECT_NE(body.find(R"("outcome":"unavailable","redactions":{"email":1,"iban":2}})"),
              std::string::npos);
    EXPECT_NE(body.find(R"("outcome":"answered","redactions":{"email":1,"iban":4}})"),
              std::string::npos);
    const auto back = trace_from(to_text(trace));
    ASSERT_TRUE(back.has_value());
    EXPECT_EQ(back->attempts[0].redactions, trace.attempts[0].redactions);
}

TEST(ReceiptText, SaysWhyAnAttemptWasMadeThatWasNoStep) {
    domain::Trace trace = full_trace("a1");
    trace.attempts[0].cause = domain::Cause::hedge;
    trace.decision.candidates[0].weight = 0.25;
    std::string body;
    internal::append_receipt(body, trace);
    EXPECT_NE(body.find(R"("outcome":"unavailable","cause":"hedge"})"), std::string::npos);
    EXPECT_NE(body.find(R"("outcome":"answered"}])"), std::string::npos);
    const auto back = trace_from(to_text(trace));
    ASSERT_TRUE(back.has_value());
    EXPECT_EQ(back->attempts[0].cause, domain::Cause::hedge);
    EXPECT_EQ(back->attempts[1].cause, domain::Cause::step);
    EXPECT_DOUBLE_EQ(back->decision.candidates[0].weight, 0.25);
}

TEST(TraceText, SaysHowManyDraftsOfAnAttemptCame) {
    domain::Trace trace = full_trace("a1");
    trace.attempts[1].drafted = 40;
    trace.attempts[1].accepted = 31;
    const auto back = trace_from(to_text(trace));
    ASSERT_TRUE(back.has_value());
    EXPECT_EQ(back->attempts[0].drafted, 0U);
    EXPECT_EQ(back->attempts[1].drafted, 40U);
    EXPECT_EQ(back->attempts[1].accepted, 31U);
}

TEST(ReceiptText, IsCanonicalJsonWithoutOrigins) {
    domain::Trace trace = full_trace("a1");
    trace.time = WallTime(std::chrono::microseconds(1'764'488'750'123'456));
    std::string body;
    internal::append_receipt(body, trace);
    EXPECT_EQ(
        body,
        R"({"version":1,"id":"a1","time":"2025-11-30T07:45:50.123456Z","operation":"chat",)"
        R"("label":{"class":"standard","residency":["EU"]},"declassified":true,)"
        R"("permitted":["T0","T1"],"rule":"class standard","rules_hash":"0123456789abcdef",)"
        R"("decision":{"target":"lan","adapter":"law","model":"llama","model_hash":"abc"},)"
        R"("attempts":[{"target":"far","adapter":"","tier":"T1",)"
        R"("endpoint":"https://far.example:443/v1","peer_authenticated":false,"bytes_sent":10,)"
        R"("bytes_received":0,"outcome":"unavailable"},{"target":"lan","adapter":"","tier":"T1",)"
        R"("endpoint":"https://far.example:443/v1","peer_authenticated":true,"bytes_sent":10,)"
        R"("bytes_received":99,"outcome":"answered"}],)"
        R"("tokens":{"prompt":12,"cached":3,"answer":5,"reasoning":1,"source":"upstream"},)"
        R"("cost":"0.001","outcome":"answered","redactions":{}})");
    EXPECT_TRUE(parse_json(body).has_value());
    EXPECT_EQ(internal::receipt_id(body), "a1");
    EXPECT_EQ(internal::receipt_id("{\"id\":\"a1\"}"), "");
}

}  // namespace
}  // namespace molly::store
