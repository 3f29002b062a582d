#include "policy/redactor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "policy/internal/payload_fixture.h"

namespace molly::policy {
namespace {

using domain::Content;
using domain::FindingKind;
using fixture::annotated;
using fixture::Known;
using fixture::redact;
using fixture::restored;
using fixture::said;
using fixture::saying;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

const std::string iban = "IT60 X054 2811 1010 0000 0123 456";
const std::vector<Known> known = {{FindingKind::iban, iban},
                                  {FindingKind::email, "anna@example.com"},
                                  {FindingKind::person, "Zoè Rossi"},
                                  {FindingKind::person, "Zoe\xCC\x80 Rossi"}};

TEST(Redactor, ReplacesSpansByTypedPlaceholders) {
    PlaceholderMap map(fixture::seed);
    const auto redacted =
        redact(annotated(saying("Ciao 😀 sono Zoè Rossi, " + iban + "."), known), map);
    ASSERT_TRUE(redacted);
    EXPECT_THAT(
        said(*redacted),
        MatchesRegex("Ciao 😀 sono \\[PERSON_1_[a-z0-9]{4}\\], \\[IBAN_1_[a-z0-9]{4}\\]\\."));
    EXPECT_EQ(redacted->redactions(),
              (domain::Redactions{{FindingKind::iban, 1}, {FindingKind::person, 1}}));
}

TEST(Redactor, WhatComesBackIsTheSameToTheByte) {
    PlaceholderMap map(fixture::seed);
    const std::string family = "👨‍👩‍👧‍👦";
    const std::vector<std::string> texts = {"Ciao 😀 sono Zoè Rossi",
                                            "Zoe\xCC\x80 Rossi e Zoè Rossi\u200D",
                                            "👨\u200DZoè Rossi\u200D👩",
                                            "שלום Zoè Rossi שלום",
                                            family + "Zoè Rossi" + family,
                                            "Zoè RossiZoè Rossi",
                                            iban + "\n" + iban,
                                            "[[Zoè Rossi]] [PERSON_1] <PERSON_1>",
                                            "[anna@example.com]"};
    for (const std::string& text : texts) {
        const auto redacted = redact(annotated(saying(text), known), map);
        ASSERT_TRUE(redacted);
        for (const Known& one : known)
            EXPECT_THAT(said(*redacted), Not(HasSubstr(one.text)));
        EXPECT_EQ(restored(*redacted, said(*redacted)), text);
    }
}

TEST(Redactor, LeavesNoHalfOfACodePoint) {
    PlaceholderMap map(fixture::seed);
    domain::AnnotatedRequest request = annotated(saying("aèb😀c"), {});
    // Spans that cut code points.
    request.findings[0] = {{FindingKind::person, domain::Checksum::none, 2, 3},
                           {FindingKind::person, domain::Checksum::none, 5, 6}};
    const auto redacted = redact(std::move(request), map);
    ASSERT_TRUE(redacted);
    EXPECT_THAT(said(*redacted), MatchesRegex("a\\[PERSON_1_....\\]b\\[PERSON_2_....\\]c"));
    EXPECT_EQ(restored(*redacted, said(*redacted)), "aèb😀c");
}

TEST(Redactor, MergesOverlapsUnderTheKindOfTheLongest) {
    PlaceholderMap map(fixture::seed);
    domain::AnnotatedRequest request = annotated(saying("see https://a:b@c.de/ now"), {});
    request.findings[0] = {{FindingKind::email, domain::Checksum::none, 12, 20},
                           {FindingKind::url_credentials, domain::Checksum::none, 4, 21}};
    const auto redacted = redact(std::move(request), map);
    ASSERT_TRUE(redacted);
    EXPECT_THAT(said(*redacted), MatchesRegex("see \\[URL_CREDENTIALS_1_....\\] now"));
}

TEST(Redactor, TheSameValueHasTheSamePlaceholderInEveryTurn) {
    PlaceholderMap map(fixture::seed);
    const auto first = redact(annotated(saying("anna@example.com"), known), map);
    const auto second = redact(annotated(saying(iban + " anna@example.com"), known), map);
    ASSERT_TRUE(first && second);
    EXPECT_THAT(said(*second), HasSubstr(said(*first)));
    PlaceholderMap other("another seed of sixteen bytes");
    const auto elsewhere = redact(annotated(saying("anna@example.com"), known), other);
    EXPECT_NE(said(*first), said(*elsewhere));
}

TEST(Redactor, NeverIssuesWhatTheTextHoldsAlready) {
    PlaceholderMap map(fixture::seed);
    const auto first = redact(annotated(saying("anna@example.com"), known), map);
    ASSERT_TRUE(first);
    std::string issued = said(*first);
    // The caller quotes the placeholder itself, in the other case.
    const std::string quoting = lower_ascii(issued) + " is anna@example.com";
    const auto second = redact(annotated(saying(quoting), known), map);
    ASSERT_TRUE(second);
    EXPECT_THAT(said(*second), Not(HasSubstr(issued)));
    EXPECT_EQ(restored(*second, said(*second)), quoting);
    // An answer of the first payload is restored all the same.
    EXPECT_EQ(restored(*first, issued), "anna@example.com");
}

TEST(Redactor, ForgetsRatherThanGrows) {
    PlaceholderMap map(fixture::seed, 2);
    for (int i = 0; i < 10; ++i) {
        const std::string value = "value" + std::to_string(i);
        const auto redacted =
            redact(annotated(saying(value), {{FindingKind::declared, value}}), map);
        ASSERT_TRUE(redacted);
        EXPECT_THAT(said(*redacted), MatchesRegex("\\[DECLARED_[123]_....\\]"));
        EXPECT_EQ(restored(*redacted, said(*redacted)), value);
    }
}

TEST(Redactor, KeepsJsonJson) {
    PlaceholderMap map(fixture::seed);
    domain::Request request = saying("go on");
    domain::Message turn;
    turn.role = domain::Role::assistant;
    domain::ToolCall call;
    call.id = "c1";
    call.name = "pay";
    call.arguments = Content(
        R"({"to":"Zo\u00e8 \"Z\" Rossi","iban":"IT60","card":4111111111111111,"note":"\ud83d\ude00"})");
    const std::string& text = call.arguments.text();
    turn.tool_calls.push_back(call);
    request.messages.insert(request.messages.begin(), turn);
    domain::AnnotatedRequest whole = annotated(std::move(request), {});
    const auto span = [&](std::string_view part) {
        const auto at = static_cast<std::uint32_t>(text.find(part));
        return domain::Finding{FindingKind::person, domain::Checksum::none, at,
                               at + static_cast<std::uint32_t>(part.size())};
    };
    domain::Finding number = span("4111111111111111");
    number.kind = FindingKind::card;
    // The first cuts an escape at its end, the last a surrogate pair.
    std::size_t at = 0;
    domain::for_each_text(whole.request, [&](const std::string& one, domain::TextForm) {
        if (one == text) whole.findings[at] = {span(R"(Zo\u00e8 \"Z\)"), number, span(R"(\ude00)")};
        ++at;
    });
    const auto redacted = redact(std::move(whole), map);
    ASSERT_TRUE(redacted);
    const auto parsed =
        parse_json(redacted->request().messages.front().tool_calls.front().arguments.text());
    ASSERT_TRUE(parsed);
    const json::object& object = parsed->get_object();
    EXPECT_THAT(std::string(object.at("to").as_string()),
                MatchesRegex("\\[PERSON_1_....\\] Rossi"));
    EXPECT_THAT(std::string(object.at("card").as_string()), MatchesRegex("\\[CARD_1_....\\]"));
    EXPECT_THAT(std::string(object.at("note").as_string()), MatchesRegex("\\[PERSON_2_....\\]"));
    // In plain text the model reads, and writes, the value itself.
    EXPECT_EQ(restored(*redacted, std::string(object.at("to").as_string())), "Zoè \"Z\" Rossi");
    EXPECT_EQ(restored(*redacted, std::string(object.at("note").as_string())), "😀");
}

TEST(Redactor, ReachesEveryTextThatIsSent) {
    PlaceholderMap map(fixture::seed);
    domain::Request request = saying(iban);
    request.messages.front().reasoning = Content(iban);
    request.messages.push_back(domain::text_message(domain::Role::tool, iban));
    request.messages.push_back(domain::text_message(domain::Role::system, iban));
    request.prompt = Content(iban);
    request.suffix = Content(iban);
    request.inputs = {Content(iban), Content("x " + iban)};
    domain::Tool tool;
    tool.name = "look";
    tool.description = Content(iban);
    tool.parameters = Content(R"({"enum":[")" + iban + R"("]})");
    request.tools.push_back(tool);
    request.format.schema = Content(R"({"const":")" + iban + R"("})");
    request.sampling.stop = {iban};
    request.metadata = {{"note", iban}, {iban, "x"}};
    request.user = iban;
    request.extensions.conversation = iban;
    request.extensions.purpose = iban;
    request.extensions.tags = {iban};
    request.caller.member = iban;
    const auto redacted = redact(annotated(std::move(request), known), map);
    ASSERT_TRUE(redacted);
    const domain::Request& sent = redacted->request();
    domain::for_each_text(sent, [&](const std::string& text, domain::TextForm) {
        EXPECT_THAT(text, Not(HasSubstr(iban)));
    });
    EXPECT_TRUE(sent.metadata.empty());
    EXPECT_TRUE(sent.user.empty());
    EXPECT_TRUE(sent.extensions.tags.empty());
    EXPECT_TRUE(sent.caller.member.empty());
    EXPECT_EQ(redacted->redactions().at(FindingKind::iban), 12U);
}

T3Closed obstacle_of(domain::Request request) {
    return Redactor::obstacle(annotated(std::move(request), known));
}

TEST(Redactor, ANameWithAnIdentifierCannotBeRedacted) {
    domain::Request request = saying("hello");
    request.messages.front().name = "anna@example.com";
    EXPECT_EQ(obstacle_of(request), T3Closed::token);
    request.messages.front().name = "anna";
    EXPECT_EQ(obstacle_of(request), T3Closed::open);
    domain::Tool tool;
    tool.name = "mail_anna@example.com";
    request.tools.push_back(tool);
    EXPECT_EQ(obstacle_of(request), T3Closed::token);
}

TEST(Redactor, AnImageAudioOrFileDoesNotGo) {
    for (const auto kind :
         {domain::Part::Kind::image, domain::Part::Kind::audio, domain::Part::Kind::file}) {
        for (const bool is_url : {false, true}) {
            domain::Request request = saying("what is it?");
            domain::Part part;
            part.kind = kind;
            part.is_url = is_url;
            part.text = Content(is_url ? "https://example.com/a.png" : "AAAA");
            request.messages.front().parts.push_back(part);
            EXPECT_EQ(obstacle_of(request), T3Closed::modality);
        }
    }
}

TEST(Redactor, AFindingOutsideItsTextOrJsonThatIsNoneStopsIt) {
    domain::AnnotatedRequest outside = annotated(saying("short"), {});
    outside.findings[0] = {{FindingKind::iban, domain::Checksum::none, 2, 99}};
    EXPECT_EQ(Redactor::obstacle(outside), T3Closed::token);
    domain::Request broken = saying("x");
    domain::Tool tool;
    tool.name = "look";
    tool.parameters = Content("{\"a\": \"" + iban);
    broken.tools.push_back(tool);
    EXPECT_EQ(obstacle_of(broken), T3Closed::token);
}

TEST(Redactor, InvalidUtf8DoesNotLeave) {
    PlaceholderMap map(fixture::seed);
    const auto redacted = redact(annotated(saying("a\xFF"), {}), map);
    ASSERT_FALSE(redacted);
    EXPECT_EQ(redacted.error().code(), ErrorCode::denied);
}

TEST(Redactor, APayloadPassesItsOwnTargetOnly) {
    PlaceholderMap map(fixture::seed);
    const auto redacted = redact(annotated(saying(iban), known), map);
    ASSERT_TRUE(redacted);
    EXPECT_TRUE(redacted->permit().check(redacted->target()));
    domain::TargetSpec other = redacted->target();
    other.id = "elsewhere";
    EXPECT_FALSE(redacted->permit().check(other));
    other.id = redacted->target().id;
    other.tier = domain::Tier::t2;
    EXPECT_FALSE(redacted->permit().check(other));
}

TEST(Redactor, MakesNothingForOtherTiers) {
    PlaceholderMap map(fixture::seed);
    auto cleared = PolicyEngine(Options{}).clear(annotated(saying(iban), known));
    ASSERT_TRUE(cleared);
    auto spec = std::make_shared<domain::TargetSpec>();
    spec->tier = domain::Tier::t2;
    auto dispatch =
        Dispatch::to(spec, "", std::make_shared<const ClearedRequest>(*std::move(cleared)));
    ASSERT_TRUE(dispatch);
    EXPECT_FALSE(Redactor::redact(*std::move(dispatch), map));
}

TEST(Redactor, AsksForLogprobsOnlyWhereNothingIsReplaced) {
    PlaceholderMap map(fixture::seed);
    domain::Request request = saying("hello");
    request.sampling.logprobs = true;
    EXPECT_TRUE(redact(annotated(request, known), map)->request().sampling.logprobs);
    request.messages = saying(iban).messages;
    EXPECT_FALSE(redact(annotated(request, known), map)->request().sampling.logprobs);
}

}  // namespace
}  // namespace molly::policy
