#include "router/confidence.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/coroutine.h"

namespace molly::router {
namespace {

using domain::Field;

class StillClock final : public Clock {
public:
    MonoTime now() const noexcept override { return {}; }
    WallTime wall() const noexcept override { return WallTime(std::chrono::hours(500'000)); }
    Task<void> sleep_until(MonoTime /*when*/) override { co_return; }
};

std::vector<domain::TokenLogprob> tokens(std::initializer_list<double> probabilities) {
    std::vector<domain::TokenLogprob> out;
    for (const double one : probabilities)
        out.push_back({.token = "t", .logprob = static_cast<float>(std::log(one)), .top = {}});
    return out;
}

TEST(Sureness, OneWildGuessInALongAnswerShows) {
    EXPECT_FALSE(sureness_of({}));
    EXPECT_NEAR(*sureness_of(tokens({1, 1, 1})), 1, 1e-6);
    EXPECT_NEAR(*sureness_of(tokens({0.5})), 0.5, 1e-6);
    auto long_answer = tokens({1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1});
    long_answer[7].logprob = static_cast<float>(std::log(0.01));
    const double guessed = *sureness_of(long_answer);
    EXPECT_LT(guessed, 0.4);
    EXPECT_GT(guessed, 0.1);
}

TEST(Sureness, NonsenseIsUnlikely) {
    auto odd = tokens({0.9});
    odd[0].logprob = std::nanf("");
    EXPECT_LT(*sureness_of(odd), 1e-6);
    odd[0].logprob = 3;
    EXPECT_DOUBLE_EQ(*sureness_of(odd), 1);
    odd[0].logprob = -INFINITY;
    EXPECT_GT(*sureness_of(odd), 0);
}

class ConfidencesTest : public ::testing::Test {
protected:
    void judge(double sureness, double score, int times, Field field = Field::science) {
        for (int i = 0; i < times; ++i)
            std::ignore = confidences_.learn({.target = "home"}, field, sureness, score, 1);
    }
    double at(double sureness, Field field = Field::science) {
        return confidences_.at({.target = "home"}, field, sureness);
    }

    StillClock clock_;
    Confidences confidences_{{}, clock_};
};

TEST_F(ConfidencesTest, IsTakenAtItsWordUntilAnswersAreJudged) {
    EXPECT_DOUBLE_EQ(at(0.7), 0.7);
    EXPECT_DOUBLE_EQ(at(7), 1);
}

TEST_F(ConfidencesTest, JudgedAnswersSayWhatItIsWorth) {
    judge(0.85, 0, 80);
    judge(0.85, 1, 20);
    judge(0.95, 1, 100);
    EXPECT_LT(at(0.85), 0.4);
    EXPECT_GT(at(0.95), 0.8);
    // What was never judged is somewhere between.
    for (double sureness = 0; sureness < 1; sureness += 0.01)
        EXPECT_LE(at(sureness), at(sureness + 0.01) + 1e-9) << sureness;
}

TEST_F(ConfidencesTest, EachDomainHasItsOwnAndBorrowsFromTheOthers) {
    judge(0.85, 0, 100, Field::medicine);
    judge(0.85, 1, 100, Field::arts);
    EXPECT_LT(at(0.85, Field::medicine), 0.3);
    EXPECT_GT(at(0.85, Field::arts), 0.7);
    EXPECT_NEAR(at(0.85, Field::science), 0.5, 0.15);
    EXPECT_DOUBLE_EQ(confidences_.at({.target = "office"}, Field::arts, 0.85), 0.85);
}

TEST_F(ConfidencesTest, TheLineKeepsThePrecisionThatIsWanted) {
    for (int bin = 0; bin < 10; ++bin) {
        const double sureness = 0.05 + 0.1 * bin;
        judge(sureness, 1, 10 * bin);
        judge(sureness, 0, 90 - 10 * bin);
    }
    const auto line = confidences_.choose({.target = "home"}, Field::science, 0.8);
    ASSERT_TRUE(line);
    EXPECT_GE(line->lower, 0.8);
    EXPECT_GT(line->accepted, 0.05);
    EXPECT_LT(line->accepted, 0.5);
    // Answers above the line pass, those well below do not.
    EXPECT_GE(at(0.95), line->confidence_min);
    EXPECT_LT(at(0.45), line->confidence_min);
    EXPECT_FALSE(confidences_.choose({.target = "home"}, Field::science, 0.999));
    EXPECT_FALSE(confidences_.choose({.target = "home"}, Field::arts, 0.5));
    EXPECT_TRUE(confidences_.choose({.target = "home"}, std::nullopt, 0.8));
    EXPECT_FALSE(confidences_.choose({.target = "office"}, std::nullopt, 0.1));
}

TEST_F(ConfidencesTest, ThreeGoodAnswersProveNothing) {
    judge(0.95, 1, 3);
    EXPECT_FALSE(confidences_.choose({.target = "home"}, Field::science, 0.9));
}

TEST_F(ConfidencesTest, RowsComeBack) {
    judge(0.85, 0, 30);
    judge(0.35, 1, 5, Field::arts);
    Confidences other({}, clock_);
    auto rows = confidences_.rows();
    ASSERT_EQ(rows.size(), 2U);
    other.load(rows);
    EXPECT_DOUBLE_EQ(other.at({.target = "home"}, Field::science, 0.85), at(0.85));
    rows[0].bin = 99;
    other.load(rows);
}

TEST_F(ConfidencesTest, EachSourceHasItsOwn) {
    judge(0.85, 0, 100);
    const Meter verified{.target = "home", .from = domain::ConfidenceSource::verifier};
    EXPECT_DOUBLE_EQ(confidences_.at(verified, Field::science, 0.85), 0.85);
    std::ignore = confidences_.learn(verified, Field::science, 0.85, 1, 10);
    EXPECT_GT(confidences_.at(verified, Field::science, 0.85), 0.85);
    EXPECT_LT(at(0.85), 0.3);
    EXPECT_EQ(confidences_.rows().size(), 2U);
}

TEST(Bands, NamesComeBack) {
    using domain::ConfidenceSource;
    EXPECT_EQ(band_name(ConfidenceSource::logprobs, bin_of(0.75)), "sure7");
    EXPECT_EQ(band_name(ConfidenceSource::verifier, 3), "sure3:verifier");
    EXPECT_EQ(sure_band_from("sure7"), SureBand({ConfidenceSource::logprobs, 7}));
    EXPECT_EQ(sure_band_from("sure3:verifier"), SureBand({ConfidenceSource::verifier, 3}));
    EXPECT_EQ(bin_of(1), 9U);
    for (const std::string_view other :
         {"sure", "sure10", "surex", "hard", "", "sure7:", "sure7:hope", "sure7verifier"})
        EXPECT_FALSE(sure_band_from(other)) << other;
}

}  // namespace
}  // namespace molly::router
