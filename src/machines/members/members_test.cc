#include "members/members.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include "base/coroutine.h"
#include "seal/seal.h"

namespace molly::members {
namespace {

class TestClock final : public Clock {
public:
    MonoTime now() const noexcept override { return MonoTime(std::chrono::hours(1)) + passed_; }
    WallTime wall() const noexcept override { return start_ + passed_; }
    Task<void> sleep_until(MonoTime /*when*/) override { co_return; }
    void advance(std::chrono::seconds by) { passed_ += by; }

private:
    const WallTime start_ = std::chrono::sys_days(std::chrono::year(2026) / 3 / 30);
    std::chrono::seconds passed_{0};
};

template <class T, class Start>
T wait_for(const Start& start) {
    // It outlives the store, whose thread may still be leaving `post` when the coroutine has gone
    // on.
    static boost::asio::io_context context;
    context.restart();
    std::optional<T> result;
    spawn(context.get_executor(), [&]() -> Task<void> {
        T value = co_await start();
        result.emplace(std::move(value));
    });
    context.run();
    return *std::move(result);
}

class MembersTest : public testing::Test {
protected:
    MembersTest()
        : folder_(std::filesystem::temp_directory_path() /
                  ("molly-members-" + seal::random_token(12))) {
        reopen();
    }
    ~MembersTest() override {
        members_.reset();
        store_.reset();
        std::filesystem::remove_all(folder_);
    }
    MembersTest(const MembersTest&) = delete;
    MembersTest& operator=(const MembersTest&) = delete;
    MembersTest(MembersTest&&) = delete;
    MembersTest& operator=(MembersTest&&) = delete;

    void reopen() {
        members_.reset();
        store_.reset();
        store::Options options;
        options.folder = folder_;
        store_ = store::Store::open(options).value();
        members_ = Members::open(*store_, clock_).value();
    }
    Result<NewKey> create(const Key* maker, const Scope& scope) {
        return wait_for<Result<NewKey>>([&] { return members_->create(maker, scope); });
    }
    Result<void> revoke(const Key& by, const std::string& id) {
        return wait_for<Result<void>>([&] { return members_->revoke(by, id); });
    }
    NewKey admin() {
        Scope scope = scope_of("root");
        scope.admin = true;
        return create(nullptr, scope).value();
    }
    static Scope scope_of(const std::string& member) {
        Scope scope;
        scope.member = member;
        return scope;
    }
    Key limited(const Scope& scope) { return create(&root_.emplace(admin()).key, scope)->key; }
    Result<std::unique_ptr<Reservation>> reserve(const Key& key, std::uint64_t tokens = 1,
                                                 domain::Money cost = {}) {
        return members_->reserve(key, tokens, cost);
    }

    std::filesystem::path folder_;
    TestClock clock_;
    std::unique_ptr<store::Store> store_;
    std::unique_ptr<Members> members_;
    std::optional<NewKey> root_;
};

TEST_F(MembersTest, AKeyIsShownOnceAndKeptAsAHash) {
    const NewKey made = admin();
    EXPECT_EQ(made.text.size(), 46U);
    EXPECT_TRUE(made.text.starts_with("molly-"));
    EXPECT_EQ(made.key.hint, made.text.substr(42));
    EXPECT_EQ(members_->authenticate(made.text)->id, made.key.id);
    reopen();
    EXPECT_EQ(members_->authenticate(made.text)->scope.member, "root");
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
        std::ifstream file(entry.path(), std::ios::binary);
        const std::string bytes{std::istreambuf_iterator<char>(file), {}};
        EXPECT_EQ(bytes.find(made.text.substr(6, 20)), std::string::npos) << entry.path();
    }
}

TEST_F(MembersTest, RefusalsAreToldApartAndQuoteNoKey) {
    NewKey root = admin();
    Scope scope = scope_of("anna");
    scope.expires = clock_.wall() + std::chrono::hours(1);
    const NewKey made = create(&root.key, scope).value();
    std::string wrong = made.text;
    wrong[10] = wrong[10] == 'a' ? 'b' : 'a';
    const auto reason = [&](const std::string& text) {
        const auto refused = members_->authenticate(text);
        EXPECT_FALSE(refused.has_value());
        EXPECT_EQ(refused.error().code(), ErrorCode::unauthenticated);
        const std::string& said = refused.error().message() + refused.error().message_italian();
        if (text.size() > 8) {
            EXPECT_EQ(said.find(text.substr(6, text.size() - 10)), std::string::npos);
            EXPECT_EQ(said.find(text.substr(text.size() - 5)), std::string::npos);
        }
        return refused.error().reason();
    };
    EXPECT_EQ(reason(""), "key_missing");
    EXPECT_EQ(reason("sk-12345678901234567890"), "key_malformed");
    EXPECT_EQ(reason(wrong), "key_unknown");
    clock_.advance(std::chrono::hours(2));
    EXPECT_EQ(reason(made.text), "key_expired");
    ASSERT_TRUE(revoke(root.key, made.key.id).has_value());
    EXPECT_EQ(reason(made.text), "key_revoked");
}

TEST_F(MembersTest, OnlyTheFirstAdminKeyNeedsNoMaker) {
    EXPECT_EQ(create(nullptr, scope_of("anna")).error().code(), ErrorCode::denied);
    admin();
    Scope scope = scope_of("eve");
    scope.admin = true;
    EXPECT_EQ(create(nullptr, scope).error().code(), ErrorCode::denied);
}

TEST_F(MembersTest, RevokingTakesTheChildrenAlong) {
    NewKey root = admin();
    const NewKey parent = create(&root.key, scope_of("anna")).value();
    const NewKey child = create(&parent.key, scope_of("anna")).value();
    const NewKey grandchild = create(&child.key, scope_of("anna")).value();
    const NewKey other = create(&root.key, scope_of("bruno")).value();
    EXPECT_EQ(revoke(other.key, child.key.id).error().code(), ErrorCode::denied);
    EXPECT_EQ(revoke(root.key, "key_none").error().code(), ErrorCode::not_found);
    ASSERT_TRUE(revoke(parent.key, child.key.id).has_value());
    for (int round = 0; round < 2; ++round) {
        EXPECT_TRUE(members_->authenticate(parent.text).has_value());
        EXPECT_FALSE(members_->authenticate(child.text).has_value());
        EXPECT_FALSE(members_->authenticate(grandchild.text).has_value());
        EXPECT_TRUE(members_->authenticate(other.text).has_value());
        EXPECT_EQ(members_->list().size(), 5U);
        reopen();
    }
    EXPECT_EQ(members_->reserve(child.key, 1, {}).error().code(), ErrorCode::unauthenticated);
    EXPECT_EQ(create(&child.key, scope_of("anna")).error().code(), ErrorCode::unauthenticated);
}

TEST_F(MembersTest, Case24AChildIsNeverWiderAndTheFieldIsNamed) {
    NewKey root = admin();
    Scope narrow = scope_of("anna");
    narrow.tiers = {domain::Tier::t0, domain::Tier::t1};
    narrow.models = {"small"};
    narrow.lowest_class = domain::Sensitivity::private_;
    narrow.requests_per_minute = 10;
    narrow.tokens_per_minute = 1000;
    narrow.parallel_max = 2;
    narrow.budget_per_month = domain::Money{5};
    narrow.expires = clock_.wall() + std::chrono::hours(1);
    const NewKey parent = create(&root.key, narrow).value();
    const auto widen = [&](auto change) {
        Scope scope = narrow;
        change(scope);
        const auto made = create(&parent.key, scope);
        if (made) return std::string();
        EXPECT_EQ(made.error().code(), ErrorCode::denied);
        return made.error().param();
    };
    EXPECT_EQ(widen([](Scope&) {}), "");
    EXPECT_EQ(widen([](Scope& s) { s.models = {"small/law"}; }), "");
    EXPECT_EQ(widen([](Scope& s) { s.admin = true; }), "admin");
    EXPECT_EQ(widen([](Scope& s) { s.member = "bruno"; }), "member");
    EXPECT_EQ(widen([](Scope& s) { s.tiers = s.tiers | domain::TierSet{domain::Tier::t3}; }),
              "tiers");
    EXPECT_EQ(widen([](Scope& s) { s.models = {"small", "big"}; }), "models");
    EXPECT_EQ(widen([](Scope& s) { s.models = {"smaller"}; }), "models");
    EXPECT_EQ(widen([](Scope& s) { s.models.clear(); }), "models");
    EXPECT_EQ(widen([](Scope& s) { s.lowest_class = domain::Sensitivity::public_; }),
              "lowest_class");
    EXPECT_EQ(widen([](Scope& s) { s.requests_per_minute = 11; }), "requests_per_minute");
    EXPECT_EQ(widen([](Scope& s) { s.requests_per_minute.reset(); }), "requests_per_minute");
    EXPECT_EQ(widen([](Scope& s) { s.tokens_per_minute = 1001; }), "tokens_per_minute");
    EXPECT_EQ(widen([](Scope& s) { s.parallel_max.reset(); }), "parallel_max");
    EXPECT_EQ(widen([](Scope& s) { s.budget_per_month = domain::Money{6}; }), "budget_per_month");
    EXPECT_EQ(widen([](Scope& s) { s.declassify = domain::Sensitivity::private_; }), "declassify");
    EXPECT_EQ(widen([&](Scope& s) { *s.expires += std::chrono::seconds(1); }), "expires");
}

TEST_F(MembersTest, Case22ParallelRequestsCannotAllPass) {
    Scope scope = scope_of("anna");
    scope.tokens_per_minute = 100;
    const Key key = limited(scope);
    std::atomic<int> admitted = 0;
    {
        std::vector<std::jthread> threads;
        for (int t = 0; t < 50; ++t) {
            threads.emplace_back([&] {
                auto room = reserve(key, 60);
                if (!room) return;
                ++admitted;
                (*room)->settle(70, {});
            });
        }
    }
    EXPECT_EQ(admitted, 1);
    const auto refused = reserve(key, 60);
    EXPECT_EQ(refused.error().code(), ErrorCode::rate_limited);
    EXPECT_EQ(refused.error().reason(), "tokens_per_minute");
    ASSERT_TRUE(refused.error().retry_after().has_value());
    EXPECT_TRUE(reserve(key, 30).has_value());
    clock_.advance(*refused.error().retry_after());
    EXPECT_TRUE(reserve(key, 60).has_value());
}

TEST_F(MembersTest, Case22ARefusalConsumesNothing) {
    Scope scope = scope_of("anna");
    scope.requests_per_minute = 1;
    scope.parallel_max = 1;
    const Key key = limited(scope);
    auto a = reserve(key);
    ASSERT_TRUE(a.has_value());
    clock_.advance(std::chrono::seconds(61));
    const auto b = reserve(key);
    ASSERT_FALSE(b.has_value());
    EXPECT_EQ(b.error().reason(), "parallel_max");
    (*a)->settle(1, {});
    auto c = reserve(key);
    EXPECT_TRUE(c.has_value());
    (*c)->settle(1, {});
    const auto d = reserve(key);
    ASSERT_FALSE(d.has_value());
    EXPECT_EQ(d.error().reason(), "requests_per_minute");
    EXPECT_LE(d.error().retry_after().value(), std::chrono::seconds(61));
    clock_.advance(d.error().retry_after().value());
    EXPECT_TRUE(reserve(key).has_value());
}

TEST_F(MembersTest, AMinuteIsNeverShort) {
    Scope scope = scope_of("anna");
    scope.requests_per_minute = 2;
    const Key key = limited(scope);
    EXPECT_TRUE(reserve(key).has_value());
    clock_.advance(std::chrono::seconds(30));
    EXPECT_TRUE(reserve(key).has_value());
    clock_.advance(std::chrono::seconds(29));
    EXPECT_FALSE(reserve(key).has_value());
    clock_.advance(std::chrono::seconds(2));
    EXPECT_TRUE(reserve(key).has_value());
    EXPECT_FALSE(reserve(key).has_value());
}

TEST_F(MembersTest, WhatWasNotUsedIsGivenBack) {
    Scope scope = scope_of("anna");
    scope.tokens_per_minute = 100;
    scope.budget_per_month = domain::Money{100};
    const Key key = limited(scope);
    {
        const auto room = reserve(key, 100, {100});
        ASSERT_TRUE(room.has_value());
        EXPECT_FALSE(reserve(key, 1).has_value());
    }
    {
        auto room = reserve(key, 90, {90});
        ASSERT_TRUE(room.has_value());
        (*room)->settle(10, {20});
        (*room)->settle(90, {90});  // only the first call counts
    }
    EXPECT_TRUE(reserve(key, 90, {80}).has_value());
    EXPECT_EQ(reserve(key, 91).error().code(), ErrorCode::rate_limited);
    const auto broke = reserve(key, 1, {81});
    EXPECT_EQ(broke.error().code(), ErrorCode::exhausted);
    EXPECT_EQ(broke.error().reason(), "budget_per_month");
    EXPECT_TRUE(reserve(key, 1).has_value());  // what costs nothing needs no budget
    EXPECT_EQ(reserve(key, 101).error().code(), ErrorCode::too_large);
}

TEST_F(MembersTest, ABudgetSurvivesARestartAndEndsWithTheMonth) {
    Scope scope = scope_of("anna");
    scope.budget_per_month = domain::Money{100};
    const Key key = limited(scope);
    auto room = reserve(key, 1, {70});
    domain::Trace trace;
    trace.id = "t1";
    trace.time = clock_.wall();
    trace.key_id = key.id;
    trace.cost = {70};
    ASSERT_TRUE(wait_for<Result<void>>([&] { return store_->append(trace); }).has_value());
    (*room)->settle(1, {70});
    EXPECT_FALSE(reserve(key, 1, {31}).has_value());
    room->reset();
    reopen();
    EXPECT_FALSE(reserve(key, 1, {31}).has_value());
    EXPECT_TRUE(reserve(key, 1, {30}).has_value());
    clock_.advance(std::chrono::days(2));  // from the 30th of March to the 1st of April
    EXPECT_TRUE(reserve(key, 1, {100}).has_value());
}

TEST_F(MembersTest, ChildrenShareTheLimitsOfTheirParent) {
    Scope scope = scope_of("anna");
    scope.parallel_max = 2;
    const Key parent = limited(scope);
    const Key one = create(&parent, scope)->key;
    const Key two = create(&parent, scope)->key;
    for (int round = 0; round < 2; ++round) {
        const auto a = reserve(one);
        const auto b = reserve(two);
        ASSERT_TRUE(a.has_value() && b.has_value());
        EXPECT_FALSE(reserve(one).has_value());
        EXPECT_FALSE(reserve(parent).has_value());
    }
    reopen();
    const auto a = reserve(one);
    const auto b = reserve(two);
    EXPECT_FALSE(reserve(parent).has_value());
}

TEST_F(MembersTest, ManyThreadsShareALimitExactly) {
    Scope scope = scope_of("anna");
    scope.parallel_max = 3;
    const Key key = limited(scope);
    std::atomic<int> running = 0;
    std::atomic<int> most = 0;
    {
        std::vector<std::jthread> threads;
        for (int t = 0; t < 4; ++t) {
            threads.emplace_back([&] {
                for (int i = 0; i < 500; ++i) {
                    const auto room = reserve(key);
                    if (!room) continue;
                    most = std::max(most.load(), ++running);
                    std::this_thread::yield();
                    --running;
                }
            });
        }
    }
    EXPECT_LE(most, 3);
    EXPECT_TRUE(reserve(key).has_value());
}

TEST(ScopeText, ComesBackWhole) {
    Scope scope;
    scope.member = "anna";
    scope.app = "editor";
    scope.admin = true;
    scope.tiers = {domain::Tier::t0, domain::Tier::t2};
    scope.models = {"small", "big/law"};
    scope.lowest_class = domain::Sensitivity::standard;
    scope.default_class = domain::Sensitivity::secret;
    scope.declassify = domain::Sensitivity::standard;
    scope.requests_per_minute = 10;
    scope.tokens_per_minute = 20;
    scope.parallel_max = 3;
    scope.budget_per_month = domain::money_from(12.5);
    scope.expires = WallTime(std::chrono::microseconds(1'764'488'750'123'456));
    const auto back = scope_from(to_text(scope));
    ASSERT_TRUE(back.has_value()) << back.error().message();
    EXPECT_EQ(to_text(*back), to_text(scope));
    EXPECT_EQ(back->expires, scope.expires);
    EXPECT_EQ(back->declassify, scope.declassify);
    EXPECT_EQ(back->budget_per_month, scope.budget_per_month);
    EXPECT_EQ(to_text(scope_from(to_text(Scope{})).value()), to_text(Scope{}));
}

TEST(ScopeText, NamesTheFieldThatIsWrong) {
    const auto field = [](std::string_view text) {
        const auto scope = scope_from(text);
        EXPECT_FALSE(scope.has_value()) << text;
        EXPECT_EQ(scope.error().code(), ErrorCode::invalid_request);
        return scope.error().param();
    };
    EXPECT_EQ(field(R"({"member":1})"), "member");
    EXPECT_EQ(field(R"({"models":["a",2]})"), "models[1]");
    EXPECT_EQ(field(R"({"tiers":["T9"]})"), "tiers");
    EXPECT_EQ(field(R"({"lowest_class":"low"})"), "lowest_class");
    EXPECT_EQ(field(R"({"requests_per_minute":-1})"), "requests_per_minute");
    EXPECT_EQ(field(R"({"parallel_max":1.5})"), "parallel_max");
    EXPECT_EQ(field(R"({"budget_per_month":"12,5"})"), "budget_per_month");
    EXPECT_EQ(field(R"({"budget_per_month":-1})"), "budget_per_month");
    EXPECT_EQ(field(R"({"budget_per_month":1e300})"), "budget_per_month");
    EXPECT_EQ(field(R"({"expires":"tomorrow"})"), "expires");
    EXPECT_EQ(field(R"({"expires":"2026-02-30"})"), "expires");
    EXPECT_EQ(field(R"({"expires":"2026-02-03T25:00:00Z"})"), "expires");
    EXPECT_EQ(field(R"({"token_per_minute":5})"), "token_per_minute");
    EXPECT_EQ(scope_from("{").error().code(), ErrorCode::invalid_request);
    EXPECT_EQ(scope_from(R"({"expires":"2026-12-31"})")->expires,
              WallTime(std::chrono::sys_days(std::chrono::year(2026) / 12 / 31)));
}

}  // namespace
}  // namespace molly::members
