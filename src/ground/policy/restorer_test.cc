#include "policy/restorer.h"

#include <optional>
#include <random>

#include <gtest/gtest.h>

#include "base/json.h"
#include "policy/internal/payload_fixture.h"

namespace molly::policy {
namespace {

using domain::FindingKind;
using fixture::annotated;
using fixture::Known;
using fixture::saying;

/// Twelve persons, so that [PERSON_1_...] stands beside [PERSON_11_...], and one that needs JSON
/// escapes.
struct Payload {
    PlaceholderMap map{fixture::seed};
    std::vector<Known> known;
    std::vector<std::string> placeholders;
    std::optional<Redacted> redacted;

    explicit Payload(domain::OutputFormat::Kind format = domain::OutputFormat::Kind::text) {
        std::string text;
        for (int i = 1; i <= 12; ++i) {
            std::string name = "Persona ";
            name += static_cast<char>('A' + i);
            if (i == 2) name += " \"la \\ grande\"\nè";
            known.push_back({FindingKind::person, name});
            text += name + "|";
        }
        domain::Request request = saying(text);
        request.format.kind = format;
        auto made = fixture::redact(annotated(std::move(request), known), map);
        EXPECT_TRUE(made);
        redacted.emplace(*std::move(made));
        const std::string sent = fixture::said(*redacted);
        for (std::size_t at = 0; at < sent.size(); at = sent.find('|', at) + 1)
            placeholders.push_back(sent.substr(at, sent.find('|', at) - at));
    }
    const std::string& value(std::size_t index) const { return known[index].text; }
};

/// Feeds `answer` in pieces that end at `cuts`; gives what came out, text by text.
std::string in_pieces(Restorer restorer, const std::string& answer,
                      const std::vector<std::size_t>& cuts, std::size_t withheld_max) {
    std::string out;
    std::size_t at = 0;
    for (const std::size_t cut : cuts) {
        domain::Delta delta;
        delta.text = answer.substr(at, cut - at);
        at = cut;
        out += restorer.restore(std::move(delta)).text;
        EXPECT_LE(restorer.withheld(), withheld_max);
    }
    domain::Delta last;
    last.text = answer.substr(at);
    out += restorer.restore(std::move(last)).text;
    return out + restorer.end().text;
}

TEST(Restorer, AnySplitGivesTheSameBytes) {
    const Payload payload;
    const auto& p = payload.placeholders;
    const std::string answer = "Dear " + p[0] + " and " + p[10] + p[0] + ", [" + p[1] + "] [" +
                               p[0].substr(0, 5) + " [[PERSON_99_zzzz] 😀" + p[11] + "[";
    const std::string whole = fixture::restored(*payload.redacted, answer);
    EXPECT_EQ(whole, "Dear " + payload.value(0) + " and " + payload.value(10) + payload.value(0) +
                         ", [" + payload.value(1) + "] [" + p[0].substr(0, 5) +
                         " [[PERSON_99_zzzz] 😀" + payload.value(11) + "[");
    std::size_t longest = 0;
    for (const std::string& one : p)
        longest = std::max(longest, one.size());
    std::vector<std::size_t> every;
    for (std::size_t i = 0; i < answer.size(); ++i) {
        every.push_back(i);
        EXPECT_EQ(in_pieces(payload.redacted->restorer(), answer, {i}, longest - 1), whole);
    }
    EXPECT_EQ(in_pieces(payload.redacted->restorer(), answer, every, longest - 1), whole);
    std::mt19937 random(7);
    for (int round = 0; round < 500; ++round) {
        std::vector<std::size_t> cuts;
        for (std::size_t i = 1; i < answer.size(); ++i) {
            if (random() % 5 == 0) cuts.push_back(i);
        }
        EXPECT_EQ(in_pieces(payload.redacted->restorer(), answer, cuts, longest - 1), whole);
    }
}

TEST(Restorer, WithholdsNothingThatCannotBecomeAPlaceholder) {
    const Payload payload;
    Restorer restorer = payload.redacted->restorer();
    for (const char* piece : {"plain", "a[1]", "[link](x)", "[PERSONA", "[IBAN_1_"}) {
        domain::Delta delta;
        delta.text = piece;
        EXPECT_EQ(restorer.restore(std::move(delta)).text, piece);
        EXPECT_EQ(restorer.withheld(), 0U);
    }
    domain::Delta delta;
    delta.text = "so [PERS";
    EXPECT_EQ(restorer.restore(std::move(delta)).text, "so ");
    EXPECT_EQ(restorer.withheld(), 5U);
}

TEST(Restorer, EitherCaseIsRestoredAndOtherChangesAreNot) {
    const Payload payload;
    const std::string& p = payload.placeholders[0];
    EXPECT_EQ(fixture::restored(*payload.redacted, lower_ascii(p)), payload.value(0));
    std::string translated = p;
    translated.replace(1, 6, "PERSONA");
    EXPECT_EQ(fixture::restored(*payload.redacted, translated), translated);
    const std::string bare = p.substr(1, p.size() - 2);
    EXPECT_EQ(fixture::restored(*payload.redacted, bare), bare);
}

TEST(Restorer, ValuesAreNotReadForPlaceholders) {
    PlaceholderMap map(fixture::seed);
    const std::string value = "[PERSON_1_";
    const auto redacted =
        fixture::redact(annotated(saying(value), {{FindingKind::declared, value}}), map);
    ASSERT_TRUE(redacted);
    EXPECT_EQ(fixture::restored(*redacted, fixture::said(*redacted) + "bcdf]"), value + "bcdf]");
}

TEST(Restorer, ArgumentsOfToolCallsAreEscapedEachForItself) {
    const Payload payload;
    const std::string& p = payload.placeholders[1];  // its value has quotes and a line break
    Restorer restorer = payload.redacted->restorer();
    const std::string arguments = R"({"to":")" + p + R"("})";
    std::string first;
    std::string second;
    const auto collect = [&](const domain::Delta& delta) {
        for (const domain::ToolCallDelta& call : delta.tool_calls)
            (call.index == 0 ? first : second) += call.arguments;
    };
    for (const char c : arguments) {  // both calls and the text, byte by byte, in turns
        domain::Delta delta;
        delta.tool_calls.push_back({.index = 0, .id = "", .name = "", .arguments = {c}});
        delta.tool_calls.push_back({.index = 1, .id = "", .name = "", .arguments = {c}});
        delta.reasoning = std::string(1, c);
        collect(restorer.restore(std::move(delta)));
    }
    domain::Delta last;
    last.finish = domain::FinishReason::tool_calls;
    collect(restorer.restore(std::move(last)));
    EXPECT_EQ(first, second);
    const auto parsed = parse_json(first);
    ASSERT_TRUE(parsed) << first;
    EXPECT_EQ(std::string(parsed->get_object().at("to").as_string()), payload.value(1));
}

TEST(Restorer, JsonAnswersAreEscapedAndReasoningIsNot) {
    const Payload payload(domain::OutputFormat::Kind::json_schema);
    const std::string& p = payload.placeholders[1];
    Restorer restorer = payload.redacted->restorer();
    domain::Delta delta;
    delta.text = R"({"name":")" + p + R"("})";
    delta.reasoning = p;
    delta.finish = domain::FinishReason::stop;
    const domain::Delta out = restorer.restore(std::move(delta));
    const auto parsed = parse_json(out.text);
    ASSERT_TRUE(parsed);
    EXPECT_EQ(std::string(parsed->get_object().at("name").as_string()), payload.value(1));
    EXPECT_EQ(out.reasoning, payload.value(1));
}

TEST(Restorer, TheStopStringIsTheCallersAgain) {
    const Payload payload;
    Restorer restorer = payload.redacted->restorer();
    domain::Delta delta;
    delta.stop_sequence = "END " + payload.placeholders[0] + "[";
    delta.finish = domain::FinishReason::stop;
    EXPECT_EQ(restorer.restore(std::move(delta)).stop_sequence, "END " + payload.value(0) + "[");
}

TEST(Restorer, TheFinishingDeltaCarriesWhatIsLeft) {
    const Payload payload;
    Restorer restorer = payload.redacted->restorer();
    domain::Delta delta;
    delta.text = "cut off [PERS";
    restorer.restore(delta);
    domain::Delta last;
    last.finish = domain::FinishReason::length;
    const domain::Delta out = restorer.restore(std::move(last));
    EXPECT_EQ(out.text, "[PERS");
    EXPECT_EQ(out.finish, domain::FinishReason::length);
    EXPECT_EQ(restorer.withheld(), 0U);
}

TEST(Restorer, RandomTextsComeBackAsTheyWere) {
    std::mt19937 random(11);
    const std::vector<std::string> pieces = {"[",    "]",      "PERSON_1", "_",     "è",
                                             "😀",   "\"",     "\\",       "[[",    "IBAN",
                                             "Anna", "Zoè R.", " ",        "\u00A0"};
    const std::vector<Known> known = {{FindingKind::person, "Anna"},
                                      {FindingKind::person, "Zoè R."}};
    PlaceholderMap map(fixture::seed);
    for (int round = 0; round < 300; ++round) {
        std::string text;
        for (int i = 0; i < 20; ++i)
            text += pieces[random() % pieces.size()];
        const auto redacted = fixture::redact(annotated(saying(text), known), map);
        ASSERT_TRUE(redacted);
        const std::string sent = fixture::said(*redacted);
        EXPECT_EQ(sent.find("Anna"), std::string::npos);
        std::vector<std::size_t> cuts;
        for (std::size_t i = 1; i < sent.size(); ++i) {
            if (random() % 3 == 0) cuts.push_back(i);
        }
        EXPECT_EQ(in_pieces(redacted->restorer(), sent, cuts, 100), text);
    }
}

}  // namespace
}  // namespace molly::policy
