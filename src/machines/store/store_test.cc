#include "store/store.h"

#include <fstream>
#include <thread>

#include <gtest/gtest.h>

#include "store/audit.h"
#include "store/internal/database.h"
#include "store/internal/test_store.h"
#include "store/trace_text.h"

namespace molly::store {
namespace {

using testing::append;
using testing::full_trace;
using testing::open_store;
using testing::TemporaryFolder;
using testing::trace;
using testing::wait_for;

std::vector<domain::Trace> list(Store& store, const TraceQuery& query) {
    auto traces = wait_for<Result<std::vector<domain::Trace>>>([&] { return store.traces(query); });
    EXPECT_TRUE(traces.has_value());
    return traces ? *std::move(traces) : std::vector<domain::Trace>{};
}

TraceQuery newest(std::uint32_t limit) {
    TraceQuery query;
    query.limit = limit;
    return query;
}

Departure departure(const std::string& id, const std::string& target) {
    Departure leaving;
    leaving.trace_id = id;
    leaving.target = target;
    leaving.endpoint = "http://10.0.0.2:8000";
    leaving.time = std::chrono::system_clock::now();
    leaving.member = "anna";
    leaving.rule = "class private";
    leaving.permitted = {domain::Tier::t0, domain::Tier::t1};
    return leaving;
}

Result<void> depart(Store& store, const Departure& leaving) {
    return wait_for<Result<void>>([&] { return store.depart(leaving); });
}

class StoreTest : public ::testing::Test {
protected:
    TemporaryFolder folder_;
};

TEST_F(StoreTest, ATraceIsReadBackAndHasAReceipt) {
    const auto store = open_store(folder_.path());
    const domain::Trace one = full_trace("a1");
    ASSERT_TRUE(append(*store, one).has_value());
    const auto back = trace(*store, "a1");
    ASSERT_TRUE(back.has_value());
    EXPECT_EQ(to_text(*back), to_text(one));
    const auto receipt = wait_for<Result<Receipt>>([&] { return store->receipt("a1"); });
    ASSERT_TRUE(receipt.has_value());
    EXPECT_EQ(receipt->sequence, 1U);
    EXPECT_EQ(receipt->hash.size(), 64U);
    EXPECT_NE(receipt->body.find("\"id\":\"a1\""), std::string::npos);
    EXPECT_EQ(trace(*store, "a2").error().code(), ErrorCode::not_found);
}

TEST_F(StoreTest, TracesAreListedNewestFirstAndFiltered) {
    const auto store = open_store(folder_.path());
    for (int i = 0; i < 6; ++i) {
        domain::Trace one = full_trace("t" + std::to_string(i));
        one.time += std::chrono::seconds(i);
        one.member = i % 2 == 0 ? "anna" : "bruno";
        one.target = i < 3 ? "lan" : "local";
        one.outcome = i == 5 ? domain::Outcome::failed : domain::Outcome::answered;
        ASSERT_TRUE(append(*store, one).has_value());
    }
    const auto last = list(*store, newest(2));
    ASSERT_EQ(last.size(), 2U);
    EXPECT_EQ(last[0].id, "t5");
    EXPECT_EQ(last[1].id, "t4");
    TraceQuery query;
    query.member = "anna";
    query.target = "lan";
    const auto hers = list(*store, query);
    ASSERT_EQ(hers.size(), 2U);
    EXPECT_EQ(hers[0].id, "t2");
    query = {};
    query.outcome = "failed";
    EXPECT_EQ(list(*store, query).size(), 1U);
    query = {};
    query.before = last[1].time;
    EXPECT_EQ(list(*store, query).size(), 4U);
}

TEST_F(StoreTest, EverythingIsThereAfterReopening) {
    {
        const auto store = open_store(folder_.path());
        for (int i = 0; i < 600; ++i)
            ASSERT_TRUE(append(*store, full_trace(std::to_string(i))).has_value());
    }
    const auto store = open_store(folder_.path());
    EXPECT_EQ(list(*store, newest(1000)).size(), 600U);
    ASSERT_TRUE(append(*store, full_trace("last")).has_value());
    const auto receipt = wait_for<Result<Receipt>>([&] { return store->receipt("last"); });
    EXPECT_EQ(receipt->sequence, 601U);
}

TEST_F(StoreTest, PowerDurabilityCommitsToo) {
    Options options;
    options.folder = folder_.path();
    options.durability = Durability::power;
    {
        const auto store = Store::open(options);
        ASSERT_TRUE(store.has_value());
        for (int i = 0; i < 5; ++i)
            ASSERT_TRUE(append(**store, full_trace(std::to_string(i))).has_value());
        ASSERT_TRUE(depart(**store, departure("lost", "lan")).has_value());
    }
    const auto store = open_store(folder_.path());
    EXPECT_EQ(list(*store, {}).size(), 6U);
}

TEST_F(StoreTest, ASecondWriterIsRefused) {
    const auto store = open_store(folder_.path());
    Options options;
    options.folder = folder_.path();
    const auto second = Store::open(options);
    ASSERT_FALSE(second.has_value());
    EXPECT_EQ(second.error().code(), ErrorCode::conflict);
    EXPECT_EQ(second.error().reason(), "data_folder_locked");
}

TEST_F(StoreTest, ADepartureWithoutOutcomeIsClosedAtTheNextStart) {
    {
        const auto store = open_store(folder_.path());
        ASSERT_TRUE(depart(*store, departure("r1", "lan")).has_value());
        ASSERT_TRUE(depart(*store, departure("r1", "other")).has_value());
        ASSERT_TRUE(depart(*store, departure("r2", "lan")).has_value());
        ASSERT_TRUE(append(*store, full_trace("r2")).has_value());
        // A rotation of the journal must carry the open departures on.
        ASSERT_TRUE(trace(*store, "r2").has_value());
        ASSERT_TRUE(append(*store, full_trace("r3")).has_value());
        ASSERT_TRUE(trace(*store, "r3").has_value());
    }
    {
        const auto store = open_store(folder_.path());
        const auto lost = trace(*store, "r1");
        ASSERT_TRUE(lost.has_value());
        EXPECT_EQ(lost->outcome, domain::Outcome::failed);
        EXPECT_NE(lost->failure.find("the process ended before the outcome was known"),
                  std::string::npos);
        ASSERT_EQ(lost->attempts.size(), 2U);
        EXPECT_EQ(lost->attempts[1].target, "other");
        EXPECT_EQ(lost->attempts[0].endpoint, "http://10.0.0.2:8000");
        EXPECT_EQ(lost->member, "anna");
        EXPECT_TRUE(wait_for<Result<Receipt>>([&] { return store->receipt("r1"); }).has_value());
    }
    const auto again = open_store(folder_.path());
    EXPECT_EQ(list(*again, {}).size(), 3U);
}

TEST_F(StoreTest, ConversationLabelsAreOnlyRaisedAndRemembered) {
    domain::Trace one = full_trace("a");
    one.conversation = "c";
    one.label = {domain::Sensitivity::secret, domain::Residency({"EU"}), {"kb"}};
    {
        const auto store = open_store(folder_.path());
        EXPECT_FALSE(store->conversation_label("c").has_value());
        ASSERT_TRUE(append(*store, one).has_value());
        EXPECT_EQ(store->conversation_label("c"), one.label);
        one.label = {domain::Sensitivity::public_, {}, {"web"}};
        ASSERT_TRUE(append(*store, one).has_value());
    }
    const auto store = open_store(folder_.path());
    const auto label = store->conversation_label("c");
    ASSERT_TRUE(label.has_value());
    EXPECT_EQ(label->sensitivity, domain::Sensitivity::secret);
    EXPECT_EQ(label->residency, domain::Residency({"EU"}));
    EXPECT_EQ(label->origins, (std::set<std::string, std::less<>>{"kb", "web"}));
}

TEST_F(StoreTest, AnActLowersAConversationAndIsRemembered) {
    domain::Trace one = full_trace("a");
    one.conversation = "c";
    one.label = {domain::Sensitivity::secret, domain::Residency({"EU"}), {"kb"}};
    domain::Trace act = full_trace("act");
    act.conversation = "c";
    act.label = one.label;
    act.lowered = {domain::Sensitivity::secret, domain::Sensitivity::standard, "it is public now"};
    {
        const auto store = open_store(folder_.path());
        ASSERT_TRUE(append(*store, one).has_value());
        ASSERT_TRUE(append(*store, act).has_value());
        EXPECT_EQ(store->conversation_label("c")->sensitivity, domain::Sensitivity::standard);
        EXPECT_EQ(store->conversation_label("c")->residency, domain::Residency({"EU"}));
        const auto receipt = wait_for<Result<Receipt>>([&] { return store->receipt("act"); });
        ASSERT_TRUE(receipt.has_value());
        EXPECT_NE(receipt->body.find(R"("operation":"declassify")"), std::string::npos);
        EXPECT_NE(receipt->body.find(R"("from":"secret","to":"standard","reason":"it is public)"),
                  std::string::npos);
    }
    {
        const auto store = open_store(folder_.path());
        EXPECT_EQ(store->conversation_label("c")->sensitivity, domain::Sensitivity::standard);
        EXPECT_EQ(trace(*store, "act")->lowered->reason, "it is public now");
        // What comes later raises it again.
        one.label.sensitivity = domain::Sensitivity::private_;
        ASSERT_TRUE(append(*store, one).has_value());
    }
    const auto store = open_store(folder_.path());
    EXPECT_EQ(store->conversation_label("c")->sensitivity, domain::Sensitivity::private_);
    EXPECT_TRUE(verify_log(folder_.path())->sound);
}

TEST_F(StoreTest, SpendingIsSummedPerKeyAndSurvives) {
    const WallTime now = std::chrono::system_clock::now();
    {
        const auto store = open_store(folder_.path());
        domain::Trace one = full_trace("a");
        ASSERT_TRUE(append(*store, one).has_value());
        one.time = now - std::chrono::days(3);
        ASSERT_TRUE(append(*store, one).has_value());
        one.key_id = "key_2";
        ASSERT_TRUE(append(*store, one).has_value());
        EXPECT_EQ(store->spent("key_1", now).value().nano, 1'000'000);
    }
    const auto store = open_store(folder_.path());
    EXPECT_EQ(store->spent("key_1", now).value().nano, 1'000'000);
    EXPECT_EQ(store->spent("key_1", now - std::chrono::days(3)).value().nano, 2'000'000);
    EXPECT_EQ(store->spent("key_3", now - std::chrono::days(3)).value().nano, 0);
}

TEST_F(StoreTest, ResponsesAreSealedAndBoundToTheirMember) {
    Options options;
    options.folder = folder_.path();
    options.retention[3].responses = false;
    options.retention[2].responses_for = std::chrono::days(0);
    const auto opened = Store::open(options);
    ASSERT_TRUE(opened.has_value());
    Store& store = **opened;
    const auto put = [&](const char* id, domain::Sensitivity sensitivity) {
        return wait_for<Result<void>>([&] {
            return store.put_response(id, "the canary sings", {sensitivity, {}, {}}, "anna");
        });
    };
    const auto get = [&](const char* id, const char* member) {
        return wait_for<Result<std::string>>([&] { return store.get_response(id, member); });
    };
    ASSERT_TRUE(put("r1", domain::Sensitivity::standard).has_value());
    EXPECT_EQ(get("r1", "anna").value(), "the canary sings");
    EXPECT_EQ(get("r1", "bruno").error().code(), ErrorCode::not_found);
    ASSERT_TRUE(put("r2", domain::Sensitivity::secret).has_value());
    EXPECT_EQ(get("r2", "anna").error().code(), ErrorCode::not_found);
    ASSERT_TRUE(put("r3", domain::Sensitivity::private_).has_value());
    EXPECT_EQ(get("r3", "anna").error().code(), ErrorCode::not_found);
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
        std::ifstream file(entry.path(), std::ios::binary);
        const std::string bytes{std::istreambuf_iterator<char>(file), {}};
        EXPECT_EQ(bytes.find("canary"), std::string::npos) << entry.path();
    }
    const auto remove = [&](const char* member) {
        return wait_for<Result<void>>([&] { return store.delete_response("r1", member); });
    };
    EXPECT_EQ(remove("bruno").error().code(), ErrorCode::not_found);
    EXPECT_TRUE(remove("anna").has_value());
    EXPECT_EQ(get("r1", "anna").error().code(), ErrorCode::not_found);
}

TEST_F(StoreTest, KeysAreKept) {
    const WallTime now =
        std::chrono::floor<std::chrono::microseconds>(std::chrono::system_clock::now());
    {
        const auto store = open_store(folder_.path());
        KeyRow row{.id = "k1",
                   .parent = {},
                   .hash = "ff",
                   .hint = "wxyz",
                   .body = "{}",
                   .created = now,
                   .revoked = std::nullopt};
        ASSERT_TRUE(wait_for<Result<void>>([&] { return store->put_key(row); }).has_value());
        row.id = "k2";
        row.parent = "k1";
        row.revoked = now;
        ASSERT_TRUE(wait_for<Result<void>>([&] { return store->put_key(row); }).has_value());
    }
    const auto store = open_store(folder_.path());
    const auto keys = store->keys();
    ASSERT_EQ(keys->size(), 2U);
    EXPECT_EQ(keys->at(0).created, now);
    EXPECT_FALSE(keys->at(0).revoked.has_value());
    EXPECT_EQ(keys->at(1).revoked, now);
    EXPECT_EQ(keys->at(1).parent, "k1");
}

TEST_F(StoreTest, ExpiryRemovesByClassAndKeepsTheReceipts) {
    Options options;
    options.folder = folder_.path();
    options.retention[static_cast<std::size_t>(domain::Sensitivity::standard)].traces =
        std::chrono::days(10);
    {
        const auto opened = Store::open(options);
        ASSERT_TRUE(opened.has_value());
        for (int i = 0; i < 5000; ++i) {
            domain::Trace one = full_trace("t" + std::to_string(i));
            one.conversation.clear();
            one.time -= std::chrono::days(i < 4000 ? 20 : 5);
            if (i % 4 == 0) one.label.sensitivity = domain::Sensitivity::public_;
            ASSERT_TRUE(append(**opened, one).has_value());
        }
        const auto rows = wait_for<Result<std::uint64_t>>([&] { return (*opened)->expire(); });
        EXPECT_EQ(rows.value(), 3000U);
        EXPECT_EQ(trace(**opened, "t1").error().code(), ErrorCode::not_found);
        EXPECT_TRUE(trace(**opened, "t4").has_value());
        EXPECT_TRUE(trace(**opened, "t4001").has_value());
        EXPECT_TRUE(
            wait_for<Result<Receipt>>([&] { return (*opened)->receipt("t1"); }).has_value());
    }
    const auto report = verify_log(folder_.path());
    ASSERT_TRUE(report.has_value());
    EXPECT_TRUE(report->sound) << report->fault;
    EXPECT_EQ(report->receipts, 5000U);
}

TEST_F(StoreTest, AFullQueueIsExhausted) {
    Options options;
    options.folder = folder_.path();
    options.queue_max = 3;
    const auto store = Store::open(options);
    ASSERT_TRUE(store.has_value());
    bool refused = false;
    for (int i = 0; i < 200 && !refused; ++i) {
        const auto done = append(**store, full_trace(std::to_string(i)));
        if (!done) {
            EXPECT_EQ(done.error().code(), ErrorCode::exhausted);
        }
        refused = !done;
    }
    EXPECT_TRUE(refused);
}

TEST_F(StoreTest, ADamagedDatabaseNamesTheCure) {
    open_store(folder_.path()).reset();
    std::ofstream(folder_.path() / "molly.db", std::ios::binary) << std::string(8192, 'x');
    Options options;
    options.folder = folder_.path();
    const auto store = Store::open(options);
    ASSERT_FALSE(store.has_value());
    EXPECT_EQ(store.error().code(), ErrorCode::corrupt);
    EXPECT_NE(store.error().message().find("backup"), std::string::npos);
    EXPECT_NE(store.error().message_italian(), store.error().message());
}

TEST_F(StoreTest, AStoreOfANewerMollyIsLeftAlone) {
    open_store(folder_.path()).reset();
    {
        auto database =
            internal::Database::open(folder_.path() / "molly.db", internal::Access::write);
        ASSERT_TRUE(database->execute("PRAGMA user_version=99").has_value());
    }
    Options options;
    options.folder = folder_.path();
    const auto store = Store::open(options);
    ASSERT_FALSE(store.has_value());
    EXPECT_EQ(store.error().code(), ErrorCode::unsupported);
    EXPECT_NE(store.error().message().find("written by a newer Molly"), std::string::npos);
}

TEST_F(StoreTest, AnotherSigningKeyIsRefused) {
    open_store(folder_.path()).reset();
    std::filesystem::remove(folder_.path() / "signing.key");
    Options options;
    options.folder = folder_.path();
    const auto store = Store::open(options);
    ASSERT_FALSE(store.has_value());
    EXPECT_EQ(store.error().code(), ErrorCode::conflict);
    EXPECT_NE(store.error().message().find("signing.key"), std::string::npos);
}

TEST_F(StoreTest, ManyThreadsAppendAndReadAtOnce) {
    const auto store = open_store(folder_.path());
    {
        std::vector<std::jthread> threads;
        for (int t = 0; t < 4; ++t) {
            threads.emplace_back([&, t] {
                for (int i = 0; i < 300; ++i) {
                    const std::string id = std::to_string(t) + "-" + std::to_string(i);
                    EXPECT_TRUE(depart(*store, departure(id, "lan")).has_value());
                    EXPECT_TRUE(append(*store, full_trace(id)).has_value());
                    if (i % 50 == 0) {
                        EXPECT_TRUE(trace(*store, id).has_value());
                    }
                    EXPECT_TRUE(store->conversation_label("conversation-" + id).has_value());
                    EXPECT_TRUE(store->spent("key_1", {}).has_value());
                }
            });
        }
    }
    EXPECT_EQ(list(*store, newest(10000)).size(), 1200U);
    const auto report = verify_log(folder_.path());
    ASSERT_TRUE(report.has_value());
    EXPECT_TRUE(report->sound) << report->fault;
    EXPECT_EQ(report->receipts, 1200U);
}

}  // namespace
}  // namespace molly::store
