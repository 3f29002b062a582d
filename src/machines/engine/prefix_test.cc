// Beginnings of prompts that outlive the engine, in a store that a test can look into.
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engine/internal/prefix_keeper.h"
#include "engine/internal/test_adapter.h"
#include "engine/internal/test_question.h"

namespace molly::engine {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the cast of these tests
using domain::KeepPrefix;
using domain::Sensitivity;

class Shelf final : public PrefixStore {
public:
    std::uint64_t room = 1U << 30U;
    Result<void> writes{};  // what the disk says

    bool keeps(Sensitivity sensitivity) const noexcept override {
        return sensitivity != Sensitivity::secret;
    }
    std::uint64_t bytes_max() const noexcept override { return room; }
    std::vector<PrefixRecord> list() override {
        const std::scoped_lock lock(mutex_);
        std::vector<PrefixRecord> records;
        for (const auto& [id, kept] : kept_)
            records.push_back(kept.record);
        return records;
    }
    Result<std::string> load(const std::string& id) override {
        const std::scoped_lock lock(mutex_);
        const auto kept = kept_.find(id);
        if (kept == kept_.end()) return fail(ErrorCode::not_found, "gone");
        return kept->second.bytes;
    }
    Result<std::string> save(const PrefixRecord& record, std::string_view bytes) override {
        const std::scoped_lock lock(mutex_);
        if (!writes) return fail(writes.error());
        const std::string id = fmt::format("p{}", ++count_);
        kept_[id] = {.record = record, .bytes = std::string(bytes)};
        kept_[id].record.id = id;
        return id;
    }
    bool touch(const std::string& id) override {
        const std::scoped_lock lock(mutex_);
        return kept_.contains(id);
    }
    void drop(const std::string& id) override {
        const std::scoped_lock lock(mutex_);
        kept_.erase(id);
    }
    void expire() override {}

    /// Lets a test change what lies there.
    void change(const std::function<void(PrefixRecord&, std::string&)>& with) {
        const std::scoped_lock lock(mutex_);
        for (auto& [id, kept] : kept_)
            with(kept.record, kept.bytes);
    }
    /// Waits for what is on its way.
    std::vector<PrefixRecord> wait_for(std::size_t count) {
        for (int i = 0; i < 400 && list().size() < count; ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        return list();
    }

private:
    struct Kept {
        PrefixRecord record;
        std::string bytes;
    };
    std::mutex mutex_;
    std::map<std::string, Kept> kept_;
    int count_ = 0;
};

std::string instructions() {
    std::string text = "Rispondi sempre in italiano, con poche parole e senza inventare nulla.";
    for (int i = 0; i < 12; ++i)
        text += fmt::format(" Regola {}: cita la fonte e di' quando non sai.", i);
    return text;
}

Question instructed(std::string text = "Parlami di Roma.", std::optional<AdapterUse> adapter = {}) {
    Question question = ask(std::move(adapter), std::move(text));
    question.request.messages.insert(question.request.messages.begin(),
                                     domain::text_message(domain::Role::system, instructions()));
    question.request.caller.member = "anna";
    question.request.extensions.sensitivity = Sensitivity::private_;
    return question;
}

Question keeping(Question question, KeepPrefix what = KeepPrefix::system) {
    question.request.extensions.keep_prefix = what;
    return question;
}

std::uint32_t cached(const Answer& answer) {
    return answer.response.usage.cached_tokens;
}

class Prefixes : public ::testing::Test {
protected:
    std::unique_ptr<Engine> start() {
        Limits limits;
        limits.prefixes = shelf_;
        return open(std::move(limits));
    }
    /// The whole answer, with what it said of its prefix.
    static Answer one(Engine& engine, const Question& question) {
        return run(engine, {question}).front();
    }
    /// Keeps the system text's keys and values, and ends the engine.
    Answer keep(const Question& question = keeping(instructed())) {
        const auto engine = start();
        Answer answer = one(*engine, question);
        EXPECT_EQ(shelf_->wait_for(1).size(), 1U);
        return answer;
    }
    AdapterUse adapter(std::uint32_t seed) {
        return write_adapter(folder_, fmt::format("p{}", seed), {.seed = seed});
    }
    const std::shared_ptr<Shelf> shelf_ = std::make_shared<Shelf>();
    TestFolder folder_;
};

TEST_F(Prefixes, GoOnFromDiskInAnotherEngine) {
    const Answer cold = keep();
    EXPECT_EQ(cold.prefix, "saving");
    EXPECT_EQ(cached(cold), 0U);
    const PrefixRecord record = shelf_->list().front();
    EXPECT_EQ(record.tokens.size() % 64, 0U);
    EXPECT_GE(record.tokens.size(), 128U);
    EXPECT_EQ(record.member, "anna");
    EXPECT_EQ(record.sensitivity, Sensitivity::private_);

    const auto engine = start();
    EXPECT_EQ(engine->stored_prefixes().count, 1U);
    const Answer warm = one(*engine, keeping(instructed()));
    EXPECT_EQ(warm.prefix, "kept");
    EXPECT_EQ(cached(warm), record.tokens.size());
    expect_alike(cold, warm, "from disk");
    EXPECT_EQ(engine->stored_prefixes().loaded, 1U);
    EXPECT_EQ(shelf_->list().size(), 1U) << "it was saved twice";
}

// Nobody need ask for it: what is kept serves whoever begins alike.
TEST_F(Prefixes, ServeOtherQuestionsWithTheSameInstructions) {
    keep();
    const auto other = instructed("Quanti abitanti ha Torino?");
    Answer cold;
    {
        const auto plain = open();
        cold = one(*plain, other);
    }
    const auto engine = start();
    const Answer warm = one(*engine, other);
    EXPECT_EQ(cached(warm), shelf_->list().front().tokens.size());
    EXPECT_TRUE(warm.prefix.empty());
    expect_alike(cold, warm, "another question");
}

TEST_F(Prefixes, AWholePromptServesOneThatBeginsWithAPartOfIt) {
    const std::string document = instructions() + instructions();
    keep(keeping(instructed(document + " Prima domanda?"), KeepPrefix::prompt));
    const std::size_t whole = shelf_->list().front().tokens.size();
    const auto question = instructed(document + " Un'altra domanda, ben diversa?");
    Answer cold;
    {
        const auto plain = open();
        cold = one(*plain, question);
    }
    const auto engine = start();
    const Answer warm = one(*engine, question);
    EXPECT_GE(cached(warm), 128U);
    EXPECT_LE(cached(warm), whole);
    expect_alike(cold, warm, "part of a prompt");
}

TEST_F(Prefixes, NeverCrossAdapterScaleOrMember) {
    const AdapterUse law = adapter(1);
    AdapterUse weaker = law;
    weaker.scale = 0.5F;
    Question others = instructed();
    others.request.caller.member = "bruno";
    keep(keeping(instructed("Parlami di Roma.", law)));
    EXPECT_EQ(shelf_->list().front().adapters, law.id);
    const auto engine = start();
    EXPECT_EQ(cached(one(*engine, instructed("Uno?", weaker))), 0U);
    EXPECT_EQ(cached(one(*engine, instructed("Due?", adapter(2)))), 0U);
    EXPECT_EQ(cached(one(*engine, instructed("Tre?"))), 0U);
    EXPECT_EQ(cached(one(*engine, others)), 0U);
    others.adapters = {law};
    EXPECT_EQ(cached(one(*engine, others)), 0U);
    EXPECT_GT(cached(one(*engine, instructed("Quattro?", law))), 0U);
}

// The store checks its bytes; whatever passes there and fits no context is computed all the same.
TEST_F(Prefixes, WhatDoesNotFitIsComputed) {
    const Answer cold = keep();
    shelf_->change([](PrefixRecord&, std::string& bytes) { bytes.resize(bytes.size() / 2); });
    const auto engine = start();
    const Answer answer = one(*engine, instructed());
    EXPECT_EQ(cached(answer), 0U);
    expect_alike(cold, answer, "cut short");
    EXPECT_EQ(engine->stored_prefixes().refused, 1U);
    EXPECT_EQ(engine->stored_prefixes().count, 0U);
}

TEST_F(Prefixes, WhatIsGoneIsComputedAndKeptAgain) {
    const Answer cold = keep();
    const auto engine = start();
    shelf_->drop(shelf_->list().front().id);
    const Answer answer = one(*engine, instructed());
    EXPECT_EQ(cached(answer), 0U);
    expect_alike(cold, answer, "gone");
    EXPECT_EQ(one(*engine, keeping(instructed())).prefix, "saving");
    EXPECT_EQ(shelf_->wait_for(1).size(), 1U);
}

TEST_F(Prefixes, AnotherLayoutIsNotUsed) {
    keep();
    shelf_->change([](PrefixRecord& record, std::string&) { record.layout = "llama.cpp v0"; });
    {
        const auto engine = start();
        EXPECT_EQ(engine->stored_prefixes().count, 0U);
        EXPECT_EQ(cached(one(*engine, instructed())), 0U);
    }
    shelf_->drop(shelf_->list().front().id);
    keep();
    Limits fewer;
    fewer.prefixes = shelf_;
    fewer.sequences_max = 2;
    const auto engine = open(std::move(fewer));
    EXPECT_EQ(cached(one(*engine, instructed())), 0U);
}

// Memory holds more than is to be kept, which is saved alone.
TEST_F(Prefixes, AreSavedOutOfMemoryToo) {
    const auto engine = start();
    const Answer first = one(*engine, instructed());
    const Answer again = one(*engine, keeping(instructed()));
    EXPECT_EQ(again.prefix, "saving");
    expect_alike(first, again, "saved from memory");
    const auto records = shelf_->wait_for(1);
    ASSERT_EQ(records.size(), 1U);
    EXPECT_EQ(cached(again), records.front().tokens.size());
}

TEST_F(Prefixes, TheAnswerSaysWhyNothingIsKept) {
    Question secret = keeping(instructed());
    secret.request.extensions.sensitivity = Sensitivity::secret;
    Question unlabelled = secret;
    unlabelled.request.extensions.sensitivity.reset();
    {
        const auto engine = start();
        EXPECT_EQ(one(*engine, secret).prefix, "class_forbids");
        EXPECT_EQ(one(*engine, unlabelled).prefix, "class_forbids");
        EXPECT_EQ(one(*engine, keeping(ask({}, "Ciao"))).prefix, "class_forbids");
        Question brief = keeping(ask({}, "Ciao"));
        brief.request.extensions.sensitivity = Sensitivity::public_;
        EXPECT_EQ(one(*engine, brief).prefix, "too_short");
        shelf_->room = 1000;
        EXPECT_EQ(one(*engine, keeping(instructed())).prefix, "too_large");
    }
    EXPECT_EQ(one(*open(), keeping(instructed())).prefix, "off");
    Limits exact;
    exact.prefixes = shelf_;
    exact.deterministic = true;
    EXPECT_EQ(one(*open(exact), keeping(instructed())).prefix, "deterministic");
    EXPECT_TRUE(shelf_->list().empty());
}

TEST_F(Prefixes, ADiskThatIsFullCostsNoAnswer) {
    shelf_->writes = fail(ErrorCode::exhausted, "no room left");
    const auto engine = start();
    EXPECT_FALSE(one(*engine, keeping(instructed())).error);
    EXPECT_EQ(engine->stored_prefixes().count, 0U);
}

// Many at once, and too little memory for what they fetch: everybody is answered.
TEST_F(Prefixes, TooLittleMemoryIsNoReasonToWaitForEver) {
    const Answer cold = keep();
    const std::uint64_t bytes = shelf_->list().front().bytes;
    Limits limits;
    limits.prefixes = shelf_;
    limits.inbox_jobs_max = 1000;
    limits.memory_bytes_max = bytes * 3;
    const auto engine = open(std::move(limits));
    const std::vector<Question> questions(24, instructed());
    for (const Answer& answer : run(*engine, questions))
        expect_alike(cold, answer, "crowd");
    EXPECT_LE(engine->memory().bytes, engine->memory().bytes_max);
}

TEST(PrefixKeeper, ReadsOnlyWhereThatIsFaster) {
    PrefixKeeper keeper(std::make_shared<Shelf>(), "a layout", std::make_shared<MemoryBudget>(1));
    const PrefixKeeper::Found found{
        .id = "p1", .tokens = 1024, .usable = 1024, .bytes = 12U << 20U};
    EXPECT_TRUE(keeper.pays(found, 0, 1.0)) << "25 ms instead of a second";
    EXPECT_FALSE(keeper.pays(found, 1024, 1.0)) << "memory holds as much";
    EXPECT_FALSE(keeper.pays(found, 0, 0.01)) << "25 ms instead of 10";
    for (int i = 0; i < 20; ++i)
        keeper.took(found.bytes, 5000);
    EXPECT_FALSE(keeper.pays(found, 0, 1.0)) << "seconds instead of one";
    int again = 0;
    while (again < 1000 && !keeper.pays(found, 0, 1.0))
        ++again;
    EXPECT_LT(again, 1000) << "the disk is never tried again";
}

TEST(PrefixKeeper, TakesNoMoreMemoryThanThereIs) {
    const auto budget = std::make_shared<MemoryBudget>(1000);
    const auto shelf = std::make_shared<Shelf>();
    PrefixKeeper keeper(shelf, "a layout", budget);
    PrefixRecord record;
    record.key = "k";
    record.tokens.assign(64, 7);
    record.sensitivity = Sensitivity::public_;
    const auto save = [&](std::uint64_t bytes) {
        record.bytes = bytes;
        return keeper.save(record, [bytes] { return std::string(bytes, 'x'); });
    };
    EXPECT_EQ(save(1001), prefix_word::no_memory);
    EXPECT_EQ(save(600), prefix_word::saving);
    ASSERT_EQ(shelf->wait_for(1).size(), 1U);
    const std::vector<llama_token> prompt(65, 7);
    auto found = keeper.find("k", prompt);
    for (int i = 0; i < 400 && !found; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        found = keeper.find("k", prompt);
    }
    ASSERT_TRUE(found);
    EXPECT_EQ(found->usable, 64U);
    EXPECT_FALSE(keeper.find("another", prompt));
    EXPECT_TRUE(budget->take(500));
    EXPECT_FALSE(keeper.fetch(*found, [](auto) {})) << "there is no room";
    budget->give_back(500);
    std::atomic<std::size_t> got = 0;
    EXPECT_TRUE(keeper.fetch(*found, [&](const auto& fetched) { got = fetched->bytes.size(); }));
    keeper.stop();
    EXPECT_EQ(got, 600U);
    EXPECT_EQ(budget->used(), 0U);
    EXPECT_FALSE(keeper.fetch(*found, [](auto) {})) << "it has stopped";
    EXPECT_EQ(budget->used(), 0U);
}

}  // namespace
}  // namespace molly::engine
