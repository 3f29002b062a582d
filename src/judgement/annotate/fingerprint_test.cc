#include "annotate/fingerprint.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "annotate/internal/folding.h"

namespace molly::annotate {
namespace {

using domain::TextForm;

const std::string passage =
    "La relazione del consulente sulla cessione del ramo d'azienda prevede tre fasi: la perizia "
    "giurata entro marzo, il passaggio dei contratti di lavoro in aprile e la chiusura dei conti "
    "con la banca entro la fine di giugno, salvo diverso avviso del consiglio.";
const std::string unrelated =
    "The gardener watered the roses before sunrise, hummed an old tune about the harbour, and went "
    "back to the shed, where a cat had been sleeping on the sacks of seed since the first frost of "
    "the year.";

std::string folded(std::string_view text, TextForm form = TextForm::plain) {
    std::string out;
    fold(text, form, out);
    return out;
}

std::size_t common(const std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b) {
    const std::set<std::uint64_t> known(a.begin(), a.end());
    return static_cast<std::size_t>(
        std::count_if(b.begin(), b.end(), [&](std::uint64_t one) { return known.contains(one); }));
}

TEST(Folding, LeavesLettersAndDigitsOnly) {
    EXPECT_EQ(folded("Perché È già\u00a0lì, \u201cdetto\u201d\u2026 12%"), "percheegialidetto12");
    EXPECT_EQ(folded("e\u0300"), "e");
    EXPECT_EQ(folded("Ωμέγα"), "Ωμέγα");
    EXPECT_EQ(folded(R"(a\n\"b\u00e8\u2019\u03a9 \\c)", TextForm::json), "abeΩc");
    EXPECT_EQ(folded("Q2lhbyE=", TextForm::base64), "ciao");
    EXPECT_EQ(folded("\\", TextForm::json), "");
    EXPECT_EQ(folded("\\u00", TextForm::json), "");
    EXPECT_EQ(folded("\xC3"), "\xC3");
}

TEST(Fingerprint, OneIsFoundOfEveryRunOfThirtyOneLetters) {
    const Fingerprinter prints("key");
    const std::string text = folded(passage);
    const auto whole = prints.of(passage);
    for (std::size_t at = 0; at + 31 <= text.size(); ++at)
        EXPECT_GE(common(whole, prints.of(text.substr(at, 31))), 1U) << at;
    EXPECT_TRUE(prints.of(text.substr(0, 30)).empty());
}

TEST(Fingerprint, SurvivesCopyingIntoAnotherText) {
    const Fingerprinter prints("key");
    std::string shouted = passage;
    std::transform(shouted.begin(), shouted.end(), shouted.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    const std::string pasted = unrelated + "\n> " + shouted.substr(40, 120) + "\n" + unrelated;
    EXPECT_GE(common(prints.of(passage), prints.of(pasted)), fingerprints_enough);
}

TEST(Fingerprint, SurvivesAFewOtherWords) {
    const Fingerprinter prints("key");
    std::string edited = passage;
    for (const auto& [from, to] : {std::pair<std::string, std::string>{"consulente", "perito"},
                                   {"aprile", "maggio"},
                                   {"banca", "cassa"}})
        edited.replace(edited.find(from), from.size(), to);
    EXPECT_GE(common(prints.of(passage), prints.of(edited)), fingerprints_enough);
}

TEST(Fingerprint, UnrelatedTextHasNothingInCommon) {
    const Fingerprinter prints("key");
    EXPECT_EQ(common(prints.of(passage), prints.of(unrelated)), 0U);
}

TEST(Fingerprint, AnotherKeyKnowsNothing) {
    EXPECT_EQ(common(Fingerprinter("one").of(passage), Fingerprinter("two").of(passage)), 0U);
}

TEST(Fingerprint, KeepsAboutTwoOfNine) {
    // The expected density of winnowing is 2 / (window + 1).
    const auto count = static_cast<double>(Fingerprinter("key").of(passage).size());
    EXPECT_NEAR(count / static_cast<double>(folded(passage).size()), 2.0 / 9, 0.08);
}

TEST(Fingerprint, OfARequestTakesWhatWasSaidAndNotWhatTheAppSays) {
    const Fingerprinter prints("key");
    domain::Request request;
    request.messages.push_back(domain::text_message(domain::Role::system, unrelated));
    request.messages.push_back(domain::text_message(domain::Role::user, passage));
    request.messages.push_back(domain::text_message(domain::Role::user, "ok"));
    const auto said = prints.of_said(request);
    ASSERT_EQ(said.size(), 1U);
    EXPECT_EQ(said.front(), prints.of(passage));
    EXPECT_EQ(prints.of_all(request).size(), 2U);
}

}  // namespace
}  // namespace molly::annotate
