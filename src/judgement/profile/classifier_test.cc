#include "profile/classifier.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "profile/internal/model.h"
#include "profile/predictor.h"
#include "profile/prototype.h"
#include "profile/training.h"

namespace molly::profile {
namespace {

std::shared_ptr<const Classifier> built_in() {
    auto made = Classifier::built_in();
    EXPECT_TRUE(made.has_value());
    return made.value_or(nullptr);
}

domain::Field field_of(const Classifier& classifier, std::string_view text) {
    domain::CapabilityProfile needs;
    needs.fields = classifier.read(text).fields;
    return needs.field();
}

TEST(BuiltInClassifier, KnowsFieldsInBothLanguages) {
    const auto classifier = built_in();
    using domain::Field;
    EXPECT_EQ(field_of(*classifier, "How do I prevent SQL injection attacks?"), Field::security);
    EXPECT_EQ(field_of(*classifier, "Write a poem about autumn leaves"), Field::creative);
    EXPECT_EQ(field_of(*classifier, "Quali sono i sintomi del diabete?"), Field::medicine);
    EXPECT_EQ(field_of(*classifier, "Che cosa fece Garibaldi nel Risorgimento?"),
              Field::humanities);
    EXPECT_EQ(field_of(*classifier, "What is the derivative of x^2?"), Field::science);
}

TEST(BuiltInClassifier, KnowsTasksInBothLanguages) {
    const auto classifier = built_in();
    using domain::TaskType;
    EXPECT_EQ(classifier->read("Translate good morning to French").task(), TaskType::translate);
    EXPECT_EQ(classifier->read("Riassumi questo articolo in tre frasi").task(),
              TaskType::summarise);
    EXPECT_EQ(classifier->read("Disegna un gatto").task(), TaskType::draw);
    EXPECT_EQ(classifier->read("Write a Python function that sorts a list").task(), TaskType::code);
}

TEST(BuiltInClassifier, SharesAreProbabilities) {
    const auto classifier = built_in();
    const std::string garbage(100'000, '\xC3');
    for (const std::string_view text : {std::string_view(), std::string_view("?"),
                                        std::string_view("ciao"), std::string_view(garbage)}) {
        const Reading reading = classifier->read(text);
        EXPECT_NEAR(std::accumulate(reading.fields.begin(), reading.fields.end(), 0.0F), 1, 1e-3);
        EXPECT_NEAR(std::accumulate(reading.tasks.begin(), reading.tasks.end(), 0.0F), 1, 1e-3);
        EXPECT_GE(reading.difficulty, 0);
        EXPECT_LE(reading.difficulty, 1);
    }
}

TEST(BuiltInClassifier, CaseDoesNotMatter) {
    const auto classifier = built_in();
    EXPECT_EQ(classifier->read("PERCHÉ LA CELLULA SI DIVIDE").topics,
              classifier->read("perché la cellula si divide").topics);
}

TEST(ClassifierFile, DamageIsRefused) {
    const std::string whole(built_in_model());
    EXPECT_TRUE(Classifier::make(whole).has_value());
    EXPECT_EQ(Classifier::make("").error().code(), ErrorCode::corrupt);
    EXPECT_EQ(Classifier::make(whole.substr(0, whole.size() - 1)).error().code(),
              ErrorCode::corrupt);
    EXPECT_EQ(Classifier::make(whole + "x").error().code(), ErrorCode::corrupt);
    std::string other = whole;
    other[8] = 'x';  // the version
    EXPECT_EQ(Classifier::make(other).error().code(), ErrorCode::corrupt);
}

TrainingRows two_topics() {
    TrainingRows rows;
    rows.topics = {{"sea", domain::Field::science}, {"bread", domain::Field::other}};
    const std::vector<std::string> sea = {"wave", "whale", "salt", "harbour", "tide"};
    const std::vector<std::string> bread = {"flour", "oven", "yeast", "crust", "dough"};
    for (std::size_t i = 0; i < 5; ++i) {
        for (std::size_t j = 0; j < 5; ++j) {
            rows.train.push_back({.text = sea[i] + " and " + sea[j],
                                  .topics = {0},
                                  .task = domain::TaskType::chat,
                                  .difficulty = 0.9F,
                                  .out_of_scope = false});
            rows.train.push_back({.text = "knead " + bread[i] + " with " + bread[j],
                                  .topics = {1},
                                  .task = domain::TaskType::tool_use,
                                  .difficulty = 0.1F,
                                  .out_of_scope = true});
        }
    }
    return rows;
}

TEST(Training, LearnsEveryHeadAndIsRepeatable) {
    const TrainingRows rows = two_topics();
    const TrainOptions options{.row_bits = 12, .epochs = 20};
    const auto trained = train(rows, options, {});
    ASSERT_TRUE(trained.has_value());
    EXPECT_EQ(trained->bytes, train(rows, options, {})->bytes);
    const auto classifier = Classifier::make(trained->bytes);
    ASSERT_TRUE(classifier.has_value());
    const Reading sea = (*classifier)->read("a whale in the tide");
    const Reading bread = (*classifier)->read("yeast makes dough");
    EXPECT_GT(sea.topics[0], 0.7);
    EXPECT_GT(bread.topics[1], 0.7);
    EXPECT_GT(sea.difficulty, bread.difficulty);
    EXPECT_LT(sea.out_of_scope, bread.out_of_scope);
}

TEST(Training, NothingToLearnIsRefused) {
    EXPECT_EQ(train({}, {}, {}).error().code(), ErrorCode::invalid_request);
}

TEST(Prototype, ANewClassJoinsFromTwentyPrompts) {
    std::vector<std::string> prompts;
    for (const std::string herb : {"basil", "thyme", "rosemary", "sage", "mint"}) {
        prompts.push_back("When should I prune my " + herb + " in the greenhouse?");
        prompts.push_back("How much water does " + herb + " need in a pot?");
        prompts.push_back("Which soil does " + herb + " like best?");
        prompts.push_back("Why do the leaves of my " + herb + " turn yellow?");
    }
    const auto herbs = Prototype::make(prompts);
    ASSERT_TRUE(herbs.has_value());
    EXPECT_GT((*herbs)->share("How much water does oregano need in a pot?"), 0.5);
    EXPECT_LT((*herbs)->share("Translate this contract into German"), 0.3);
    EXPECT_EQ(Prototype::make(std::span(prompts).first(3)).error().code(),
              ErrorCode::invalid_request);
}

TEST(Predictor, ReadsOptionsApartFromTheQuestion) {
    const auto classifier = built_in();
    const PromptView one = view_of("granite\nA. granite\nB. granite\nAnswer:", *classifier);
    ASSERT_FALSE(one.stem.empty());
    ASSERT_FALSE(one.options.empty());
    for (const auto& [hash, count] : one.options) {
        const bool shared = std::any_of(one.stem.begin(), one.stem.end(),
                                        [&](const auto& piece) { return piece.first == hash; });
        EXPECT_FALSE(shared);
    }
    EXPECT_TRUE(view_of("granite", *classifier).options.empty());
}

TEST(Predictor, LearnsWhoIsGoodAtWhat) {
    const auto classifier = built_in();
    std::vector<PromptView> views;
    std::vector<std::vector<float>> scores(2);
    for (int i = 0; i < 40; ++i) {
        const bool sums = i % 2 == 0;
        const std::string number = std::to_string(i);
        views.push_back(view_of(sums ? "What is " + number + " plus 17 times 3?"
                                     : "Tell a story about the harbour number " + number,
                                *classifier));
        scores[0].push_back(sums ? 0.0F : 1.0F);
        scores[1].push_back(1.0F);
    }
    std::vector<const PromptView*> all;
    for (const PromptView& view : views)
        all.push_back(&view);
    const auto learned = Predictor::train(all, {"weak", "strong"}, scores, {});
    ASSERT_TRUE(learned.has_value());
    const auto gain = [&](const Predictor& predictor, std::string_view prompt) {
        const auto expected = predictor.predict(view_of(prompt, *classifier));
        return expected[1] - expected[0];
    };
    EXPECT_GT(gain(**learned, "What is 99 plus 17 times 3?"),
              gain(**learned, "Tell a story about the harbour of Genoa") + 0.2F);
    const auto again = Predictor::make((*learned)->bytes());
    ASSERT_TRUE(again.has_value());
    EXPECT_EQ(gain(**again, "What is 5 plus 17?"), gain(**learned, "What is 5 plus 17?"));
    EXPECT_EQ(Predictor::make((*learned)->bytes().substr(1)).error().code(), ErrorCode::corrupt);
    EXPECT_EQ(Predictor::train({}, {}, {}, {}).error().code(), ErrorCode::invalid_request);
}

}  // namespace
}  // namespace molly::profile
