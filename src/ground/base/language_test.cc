#include "base/language.h"

#include <gtest/gtest.h>

namespace molly {
namespace {

TEST(Language, ComesFromALocaleOrAHeader) {
    const std::pair<std::string_view, Language> cases[] = {
        {"", Language::english},
        {"C", Language::english},
        {"it_IT.UTF-8", Language::italian},
        {"IT", Language::italian},
        {"en_GB.UTF-8", Language::english},
        {"item", Language::english},  // a word that only begins like it
        {"it-IT,it;q=0.9,en;q=0.8", Language::italian},
        {"en-US,en;q=0.9,it;q=0.8", Language::english},
        {"de, it;q=0.5", Language::italian},
        {"it;q=0.1, en;q=0.9", Language::english},
        {"it;q=0", Language::english},
        {"fr,de", Language::english},
        {"it;q=abc", Language::italian},
    };
    for (const auto& [text, language] : cases)
        EXPECT_EQ(language_of(text), language) << text;
}

TEST(Language, MessagesFallBackToEnglish) {
    const Error both = Error(ErrorCode::denied, "no").italian("nò");
    const Error one(ErrorCode::denied, "no");
    EXPECT_EQ(message_in(both, Language::italian), "nò");
    EXPECT_EQ(message_in(both, Language::english), "no");
    EXPECT_EQ(message_in(one, Language::italian), "no");
    EXPECT_EQ(say(Language::italian, "Done.", "Fatto."), "Fatto.");
}

}  // namespace
}  // namespace molly
