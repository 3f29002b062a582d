#include "annotate/annotate.h"

#include <functional>

#include <gtest/gtest.h>

#include "annotate/internal/matcher.h"

namespace molly::annotate {
namespace {

using domain::AnnotatedRequest;
using domain::Content;
using domain::Label;
using domain::Request;
using domain::Residency;
using domain::Role;
using domain::Sensitivity;

Request ask(std::string text) {
    Request request;
    request.caller.member = "anna";
    request.caller.key_id = "k1";
    request.messages.push_back(domain::text_message(Role::user, std::move(text)));
    return request;
}

LabelRule phrase_rule(std::string phrase, Sensitivity sensitivity = Sensitivity::secret) {
    LabelRule rule;
    rule.name = "falcon";
    rule.phrases = {std::move(phrase)};
    rule.sensitivity = sensitivity;
    return rule;
}

Result<AnnotatedRequest> annotate(Options options, Request request,
                                  const std::optional<Label>& sticky = std::nullopt) {
    TRY(const auto annotator, Annotator::make(std::move(options)));
    return annotator->annotate(std::move(request), sticky);
}

Sensitivity class_with_rule(LabelRule rule, Request request) {
    Options options;
    options.rules.push_back(std::move(rule));
    const auto annotated = annotate(std::move(options), std::move(request));
    EXPECT_TRUE(annotated.has_value());
    return annotated->label.sensitivity;
}

TEST(Annotator, WithoutADeclarationEverythingIsPrivateAndNamesItsMember) {
    const auto annotated = annotate({}, ask("ciao"));
    ASSERT_TRUE(annotated);
    EXPECT_EQ(annotated->label.sensitivity, Sensitivity::private_);
    EXPECT_FALSE(annotated->label.residency.constrained());
    EXPECT_TRUE(annotated->label.origins.contains("member:anna"));
    EXPECT_FALSE(annotated->declassified);
    ASSERT_EQ(annotated->signals.size(), 1U);
    EXPECT_EQ(annotated->signals[0].source, "default");
}

TEST(Annotator, RefusesAClassBelowTheKeysLowest) {
    Request request = ask("ciao");
    request.extensions.sensitivity = Sensitivity::standard;
    const auto annotated = annotate({}, request);
    ASSERT_FALSE(annotated);
    EXPECT_EQ(annotated.error().code(), ErrorCode::denied);
    EXPECT_EQ(annotated.error().reason(), "class_below_key");
    EXPECT_NE(annotated.error().message().find("k1"), std::string::npos);
}

TEST(Annotator, RecordsALowerClassThatTheKeyMayDeclare) {
    Request request = ask("ciao");
    request.caller.lowest_class = Sensitivity::public_;
    request.extensions.sensitivity = Sensitivity::standard;
    const auto annotated = annotate({}, request);
    ASSERT_TRUE(annotated);
    EXPECT_EQ(annotated->label.sensitivity, Sensitivity::standard);
    EXPECT_TRUE(annotated->declassified);
}

TEST(Annotator, TheDefaultOfAKeyCannotGoBelowItsOwnLowest) {
    Request request = ask("ciao");
    request.caller.default_class = Sensitivity::public_;
    EXPECT_EQ(annotate({}, request)->label.sensitivity, Sensitivity::private_);
    request.caller.lowest_class = Sensitivity::public_;
    EXPECT_EQ(annotate({}, request)->label.sensitivity, Sensitivity::public_);
}

TEST(Annotator, ARuleRaisesAndNeverLowers) {
    Request declared = ask("il progetto falco");
    declared.caller.lowest_class = Sensitivity::public_;
    declared.extensions.sensitivity = Sensitivity::public_;
    Options options;
    options.rules.push_back(phrase_rule("progetto falco"));
    const auto raised = annotate(options, declared);
    EXPECT_EQ(raised->label.sensitivity, Sensitivity::secret);
    EXPECT_FALSE(raised->declassified);
    declared.extensions.sensitivity = Sensitivity::secret;
    options.rules[0].sensitivity = Sensitivity::public_;
    EXPECT_EQ(annotate(options, declared)->label.sensitivity, Sensitivity::secret);
}

TEST(Annotator, TheLabelOfAConversationSticks) {
    Label sticky;
    sticky.sensitivity = Sensitivity::secret;
    sticky.residency = Residency({"EU"});
    sticky.origins = {"corpus:payroll"};
    Request request = ask("e adesso?");
    request.extensions.residency = Residency({"IT", "US"});
    const auto annotated = annotate({}, request, sticky);
    EXPECT_EQ(annotated->label.sensitivity, Sensitivity::secret);
    EXPECT_EQ(annotated->label.residency, Residency({"IT"}));
    EXPECT_TRUE(annotated->label.origins.contains("corpus:payroll"));
}

TEST(Annotator, ConditionsOfARuleMustAllHold) {
    LabelRule rule = phrase_rule("falco");
    rule.members = {"bruno"};
    EXPECT_EQ(class_with_rule(rule, ask("falco")), Sensitivity::private_);
    rule.members = {"anna"};
    rule.tags = {"hr"};
    EXPECT_EQ(class_with_rule(rule, ask("falco")), Sensitivity::private_);
    Request tagged = ask("falco");
    tagged.extensions.tags = {"hr"};
    EXPECT_EQ(class_with_rule(rule, tagged), Sensitivity::secret);
    rule.phrases.clear();
    tagged.messages.clear();
    EXPECT_EQ(class_with_rule(rule, tagged), Sensitivity::secret);
}

// Case 30: the phrase may be anywhere.
TEST(Annotator, LooksIntoEveryFieldOfARequest) {
    const std::string marker = "the falcon lands";
    const std::vector<std::function<void(Request&)>> places = {
        [&](Request& r) {
            r.messages.insert(r.messages.begin(), domain::text_message(Role::system, marker));
        },
        [&](Request& r) {
            r.messages.insert(r.messages.begin(), domain::text_message(Role::user, marker));
        },
        [&](Request& r) { r.messages.push_back(domain::text_message(Role::tool, marker)); },
        [&](Request& r) { r.messages[0].reasoning = Content(marker); },
        [&](Request& r) { r.messages[0].name = marker; },
        [&](Request& r) { r.messages[0].tool_calls = {{"c", "f", Content(marker)}}; },
        [&](Request& r) { r.messages[0].tool_calls = {{"c", marker, {}}}; },
        [&](Request& r) {
            r.messages[0].parts.push_back(
                {domain::Part::Kind::image, Content("https://x/?q=" + marker), "", true});
        },
        [&](Request& r) {
            r.messages[0].parts.push_back({domain::Part::Kind::file,
                                           Content("dGhlIGZhbGNvbiBsYW5kcw=="), "text/plain",
                                           false});
        },
        [&](Request& r) { r.prompt = Content(marker); },
        [&](Request& r) { r.suffix = Content(marker); },
        [&](Request& r) { r.inputs = {Content("x"), Content(marker)}; },
        [&](Request& r) { r.tools = {{marker, {}, {}, false}}; },
        [&](Request& r) { r.tools = {{"f", Content(marker), {}, false}}; },
        [&](Request& r) { r.tools = {{"f", {}, Content(marker), false}}; },
        [&](Request& r) { r.format.schema = Content(marker); },
        [&](Request& r) { r.sampling.stop = {marker}; },
        [&](Request& r) { r.metadata["note"] = marker; },
        [&](Request& r) { r.metadata[marker] = "x"; },
        [&](Request& r) { r.user = marker; },
    };
    for (std::size_t i = 0; i < places.size(); ++i) {
        Request request = ask("harmless");
        EXPECT_EQ(class_with_rule(phrase_rule(marker), request), Sensitivity::private_);
        places[i](request);
        EXPECT_EQ(class_with_rule(phrase_rule(marker), request), Sensitivity::secret) << i;
    }
}

TEST(Annotator, FindsAPhraseInItsOtherForms) {
    const LabelRule rule = phrase_rule("città segreta");
    for (const std::string text : {"CITTÀ SEGRETA", "la città\n  segreta!", "città\u00a0segreta",
                                   "citt\\u00e0 segreta", "citt\\u00c0\\nSEGRETA"}) {
        EXPECT_EQ(class_with_rule(rule, ask(text)), Sensitivity::secret) << text;
    }
    EXPECT_EQ(class_with_rule(rule, ask("città non segreta")), Sensitivity::private_);
    EXPECT_EQ(class_with_rule(phrase_rule("a.c"), ask("abc")), Sensitivity::private_);
}

TEST(Annotator, PatternsMindCaseAndCountTexts) {
    LabelRule rule;
    rule.name = "iban";
    rule.patterns = {"IT\\d{2}[A-Z]\\d{10}", "never"};
    rule.sensitivity = Sensitivity::secret;
    Options options;
    options.rules.push_back(rule);
    Request request = ask("IT60X0542811101 e IT60X0542811101");
    request.messages.push_back(domain::text_message(Role::user, "IT60X0542811101"));
    const auto annotated = annotate(options, request);
    ASSERT_EQ(annotated->signals.size(), 2U);
    EXPECT_EQ(annotated->signals[1].source, "rule:iban");
    EXPECT_EQ(annotated->signals[1].count, 2U);
    EXPECT_EQ(class_with_rule(rule, ask("it60x0542811101")), Sensitivity::private_);
}

TEST(Annotator, AnAutomatonThatIsTooSmallStillFindsEverything) {
    LabelRule rule;
    rule.name = "wide";
    for (int i = 0; i < 40; ++i)
        rule.patterns.push_back("a.{" + std::to_string(100 + i) + "}b[a-c]{0,30}z");
    rule.sensitivity = Sensitivity::secret;
    std::string text;
    for (int i = 0; i < 20'000; ++i)
        text += static_cast<char>('a' + (i * i / 7) % 3);
    text += "a" + std::string(120, 'c') + "bz";
    EXPECT_EQ(class_with_rule(rule, ask(text)), Sensitivity::secret);
}

TEST(Annotator, APatternThatDoesNotCompileIsNamedByItsPath) {
    Options options;
    options.rules.resize(2);
    options.rules[1].patterns = {"ok", "(unclosed"};
    const auto made = Annotator::make(options);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code(), ErrorCode::invalid_request);
    EXPECT_EQ(made.error().param(), "rules[1].patterns[1]");
    options.rules[1].patterns.clear();
    options.rules[1].phrases = {" "};
    EXPECT_EQ(Annotator::make(options).error().param(), "rules[1].phrases[0]");
}

TEST(Annotator, ProfilesWhatARequestNeeds) {
    Request request = ask(std::string(3500, 'x'));
    request.tools = {{"f", {}, {}, false}};
    request.format.kind = domain::OutputFormat::Kind::json_schema;
    request.sampling.answer_tokens_max = 7;
    request.messages[0].parts.push_back(
        {domain::Part::Kind::image, Content("AAAA"), "image/png", false});
    const auto profile = annotate({}, request)->capability;
    EXPECT_NEAR(profile.prompt_tokens, 1804, 5);
    EXPECT_EQ(profile.context_tokens, profile.prompt_tokens);
    EXPECT_EQ(profile.answer_tokens, 7U);
    EXPECT_TRUE(profile.tools && profile.json_schema && profile.images);
    EXPECT_FALSE(profile.logprobs);
}

TEST(Annotator, AnEmbeddingNeedsTheContextOfItsLongestInputOnly) {
    Request request;
    request.operation = domain::Operation::embed;
    request.inputs.assign(10, Content(std::string(350, 'x')));
    EXPECT_EQ(estimate_prompt_tokens(request), 1000U);
    EXPECT_EQ(estimate_context_tokens(request), 100U);
}

TEST(WithoutEscapes, ReadsWhatAModelWouldRead) {
    EXPECT_EQ(without_escapes(R"(a\u00e8\n\"b\\)"), "aè\n\"b\\");
    EXPECT_EQ(without_escapes(R"(\ud83d\ude00)"), "😀");
    EXPECT_EQ(without_escapes(R"(\u12)"), "u12");
    EXPECT_EQ(without_escapes("end\\"), "end\\");
}

}  // namespace
}  // namespace molly::annotate
