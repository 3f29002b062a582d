#include "annotate/annotate.h"

#include <algorithm>
#include <functional>

#include <gtest/gtest.h>

#include "annotate/internal/escapes.h"
#include "domain/texts.h"
#include "seal/seal.h"

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

std::optional<std::uint32_t> count_of(const AnnotatedRequest& annotated, std::string_view source) {
    for (const domain::Signal& signal : annotated.signals) {
        if (signal.source == source) return signal.count;
    }
    return std::nullopt;
}

/// A request whose caller declared it public, as its key may.
Request open(std::string text) {
    Request request = ask(std::move(text));
    request.caller.lowest_class = Sensitivity::public_;
    request.extensions.sensitivity = Sensitivity::public_;
    return request;
}

TEST(Annotator, AnIdentifierRaisesToPrivateAndASecretToSecret) {
    const auto plain = annotate({}, open("what is a monad?"));
    EXPECT_EQ(plain->label.sensitivity, Sensitivity::public_);
    EXPECT_TRUE(plain->detection_complete);
    const auto iban = annotate({}, open("IT60 X054 2811 1010 0000 0123 456 e a@b.it, c@d.it"));
    EXPECT_EQ(iban->label.sensitivity, Sensitivity::private_);
    EXPECT_FALSE(iban->declassified);
    EXPECT_EQ(count_of(*iban, "detect:iban"), 1U);
    EXPECT_EQ(count_of(*iban, "detect:email"), 2U);
    ASSERT_EQ(iban->findings.at(0).size(), 3U);
    EXPECT_EQ(iban->findings[0][0].end, 33U);
    const auto key = annotate({}, open("AKIAIOSFODNN7EXAMPLE"));
    EXPECT_EQ(key->label.sensitivity, Sensitivity::secret);
}

// Case 30: an identifier anywhere counts, and its finding stands at its text.
TEST(Annotator, FindsAnIdentifierInEveryFieldOfARequest) {
    const std::string iban = "IT60X0542811101000000123456";
    const std::vector<std::function<void(Request&)>> places = {
        [&](Request& r) {
            r.messages.insert(r.messages.begin(), domain::text_message(Role::user, iban));
        },
        [&](Request& r) { r.messages.push_back(domain::text_message(Role::tool, iban)); },
        [&](Request& r) { r.messages[0].tool_calls = {{"c", "f", Content(iban)}}; },
        [&](Request& r) {
            r.messages[0].parts.push_back(
                {domain::Part::Kind::file, Content(seal::to_base64("conto " + iban)), "", false});
        },
        [&](Request& r) { r.inputs = {Content("x"), Content(iban)}; },
        [&](Request& r) { r.tools = {{"f", Content(iban), {}, false}}; },
        [&](Request& r) { r.metadata["caption"] = iban; },
        [&](Request& r) { r.user = iban; },
    };
    for (std::size_t i = 0; i < places.size(); ++i) {
        Request request = open("harmless");
        places[i](request);
        const auto annotated = annotate({}, request);
        ASSERT_TRUE(annotated);
        EXPECT_EQ(count_of(*annotated, "detect:iban"), 1U) << i;
        std::size_t text = 0;
        for_each_text(annotated->request, [&](const std::string& one, domain::TextForm form) {
            for (const domain::Finding& finding : annotated->findings.at(text)) {
                const std::string span = one.substr(finding.begin, finding.end - finding.begin);
                EXPECT_EQ(span, form == domain::TextForm::base64 ? one : iban) << i;
            }
            ++text;
        });
        EXPECT_EQ(text, annotated->findings.size());
    }
}

TEST(Annotator, WhatNobodyCanReadLeavesDetectionIncomplete) {
    Request request = ask("see the file");
    request.messages[0].parts.push_back(
        {domain::Part::Kind::file, Content(seal::to_base64("%PDF-1.7\xff\xfe")), "", false});
    EXPECT_FALSE(annotate({}, request)->detection_complete);
    request.messages[0].parts.back().text = Content("not base64!");
    EXPECT_FALSE(annotate({}, request)->detection_complete);
    request.messages[0].parts.back().text = Content(seal::to_base64("a text"));
    EXPECT_TRUE(annotate({}, request)->detection_complete);
}

TEST(Annotator, WithoutDetectionNothingIsFoundAndItSaysSo) {
    Options options;
    options.detect.enabled = false;
    const auto annotated = annotate(options, open("IT60X0542811101000000123456"));
    EXPECT_EQ(annotated->label.sensitivity, Sensitivity::public_);
    EXPECT_FALSE(annotated->detection_complete);
}

TEST(Annotator, TheClassOfAKindAndTheMeaningOfWrongDigitsAreConfigured) {
    Options options;
    const auto iban = static_cast<std::size_t>(domain::FindingKind::iban);
    const std::string wrong = "IT60X0542811101000000123457";
    EXPECT_EQ(annotate(options, open(wrong))->label.sensitivity, Sensitivity::private_);
    options.detect.invalid_raises = false;
    EXPECT_EQ(annotate(options, open(wrong))->label.sensitivity, Sensitivity::public_);
    EXPECT_EQ(annotate(options, open(wrong))->findings[0].size(), 1U);
    options.detect.classes[iban] = Sensitivity::secret;
    const std::string right = "IT60X0542811101000000123456";
    EXPECT_EQ(annotate(options, open(right))->label.sensitivity, Sensitivity::secret);
    options.detect.classes[iban] = std::nullopt;
    EXPECT_EQ(annotate(options, open(right))->label.sensitivity, Sensitivity::public_);
}

TEST(Annotator, ContentOnASensitiveTopicIsPrivate) {
    const auto topic_of = [](const std::string& text) {
        const auto annotated = annotate({}, open(text));
        std::string topics;
        for (const domain::Signal& signal : annotated->signals) {
            if (signal.source.starts_with("topic:")) topics += signal.source.substr(6) + " ";
        }
        EXPECT_EQ(annotated->label.sensitivity,
                  topics.empty() ? Sensitivity::public_ : Sensitivity::private_)
            << text;
        return topics;
    };
    EXPECT_EQ(topic_of("Il medico mi ha dato una terapia per la pressione"), "health ");
    EXPECT_EQ(topic_of("The patient complains of a headache"), "health ");
    EXPECT_EQ(topic_of("L'avvocato ha letto la clausola del contratto"), "legal ");
    EXPECT_EQ(topic_of("Ho perso la busta paga di marzo"), "financial ");
    EXPECT_EQ(topic_of("My daughter starts tomorrow"), "children ");
    EXPECT_EQ(topic_of("Il bambino ha sei anni"), "children ");
    for (const std::string harmless :
         {"Write a function that forks a child process", "Explain monads", "Spiega la relatività",
          "The doctor of philosophy", "Come si dice conto in inglese?"}) {
        EXPECT_EQ(topic_of(harmless), "");
    }
}

TEST(Annotator, WhatARuleMatchesIsAFinding) {
    Options options;
    options.rules.push_back(phrase_rule("progetto falco"));
    options.rules[0].patterns = {"PRJ-[0-9]{4}"};
    const std::string text = "il Progetto  Falco e PRJ-1234, \\u0050RJ-5678";
    const auto annotated = annotate(options, ask(text));
    const auto& findings = annotated->findings.at(0);
    ASSERT_EQ(findings.size(), 3U);
    const auto span = [&](std::size_t i) {
        return text.substr(findings[i].begin, findings[i].end - findings[i].begin);
    };
    EXPECT_EQ(findings[0].kind, domain::FindingKind::declared);
    EXPECT_EQ(span(0), "Progetto  Falco");
    EXPECT_EQ(span(1), "PRJ-1234");
    EXPECT_EQ(span(2), "\\u0050RJ-5678");
    options.rules[0].members = {"bruno"};
    const auto other = annotate(options, ask(text));
    for (const domain::Finding& finding : other->findings.at(0))
        EXPECT_NE(finding.kind, domain::FindingKind::declared);
}

TEST(Annotator, RulesKnowPathsAndCorpora) {
    LabelRule rule;
    rule.name = "hr";
    rule.paths = {"/hr/*.pdf"};
    rule.sensitivity = Sensitivity::secret;
    Request request = ask("riassumi");
    EXPECT_EQ(class_with_rule(rule, request), Sensitivity::private_);
    request.metadata["path"] = "/hr/2024/paghe.pdf";
    EXPECT_EQ(class_with_rule(rule, request), Sensitivity::secret);
    request.metadata["path"] = "/hr/2024/paghe.txt";
    EXPECT_EQ(class_with_rule(rule, request), Sensitivity::private_);
    rule.paths.clear();
    rule.corpora = {"payroll"};
    EXPECT_EQ(class_with_rule(rule, request), Sensitivity::private_);
    Options options;
    options.rules.push_back(rule);
    Label sticky;
    sticky.origins = {"corpus:payroll"};
    EXPECT_EQ(annotate(options, request, sticky)->label.sensitivity, Sensitivity::secret);
    request.metadata["corpus"] = "payroll";
    EXPECT_EQ(class_with_rule(rule, request), Sensitivity::secret);
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

TEST(Annotator, NamesAreLookedForWhereTheyCouldRaiseTheClassOrSomethingMayLeave) {
    const std::string text = "My name is Giovanni Bianchi and I live in Bologna.";
    const auto finds_person = [&](bool outside, Sensitivity declared) {
        Options options;
        options.detect.outside = outside;
        Request request = ask(text);
        request.caller.lowest_class = Sensitivity::public_;
        request.extensions.sensitivity = declared;
        const auto annotated = annotate(std::move(options), std::move(request));
        const bool found = std::any_of(
            annotated->signals.begin(), annotated->signals.end(),
            [](const domain::Signal& signal) { return signal.source == "detect:person"; });
        // What was not looked for may not leave.
        EXPECT_EQ(annotated->detection_complete, found);
        EXPECT_GE(annotated->label.sensitivity, Sensitivity::private_);
        return found;
    };
    EXPECT_TRUE(finds_person(true, Sensitivity::private_));
    EXPECT_TRUE(finds_person(true, Sensitivity::public_));
    EXPECT_TRUE(finds_person(false, Sensitivity::standard));
    EXPECT_FALSE(finds_person(false, Sensitivity::private_));
}

Request ask_in_parts(std::string first, std::string second) {
    Request request = ask(std::move(first));
    domain::Part rest;
    rest.text = Content(std::move(second));
    request.messages[0].parts.push_back(rest);
    return request;
}

TEST(Annotator, AnIdentifierInTwoPartsOfAMessageIsFoundInBoth) {
    Request request = ask_in_parts("paga a IT60 X054 28", "11 1010 0000 0123 456 entro domani");
    request.caller.lowest_class = Sensitivity::public_;
    request.extensions.sensitivity = Sensitivity::public_;
    const auto annotated = annotate({}, std::move(request));
    ASSERT_TRUE(annotated);
    EXPECT_EQ(annotated->label.sensitivity, Sensitivity::private_);
    std::vector<std::string> found;
    std::size_t index = 0;
    domain::for_each_text(annotated->request, [&](const std::string& text, domain::TextForm) {
        for (const domain::Finding& finding : annotated->findings[index]) {
            if (finding.kind == domain::FindingKind::iban)
                found.push_back(text.substr(finding.begin, finding.end - finding.begin));
        }
        ++index;
    });
    EXPECT_EQ(found, (std::vector<std::string>{"IT60 X054 28", "11 1010 0000 0123 456"}));
}

TEST(Annotator, ARulesPhraseInTwoPartsOfAMessageCountsForTheRule) {
    for (const auto& [first, second] :
         {std::pair{"del progetto fal", "co si parla"}, {"del progetto", "falco si parla"}}) {
        Request request = ask_in_parts(first, second);
        EXPECT_EQ(class_with_rule(phrase_rule("progetto falco"), request), Sensitivity::secret)
            << first;
        // What says it whole in one part is counted there.
        request.messages[0].parts[1].text = Content("e basta");
        EXPECT_EQ(class_with_rule(phrase_rule("progetto falco"), request), Sensitivity::private_);
    }
    // Without the recognisers the rules go on.
    Options options;
    options.detect.enabled = false;
    options.rules.push_back(phrase_rule("progetto falco"));
    const auto annotated = annotate(options, ask_in_parts("del progetto", "falco si parla"));
    ASSERT_TRUE(annotated);
    EXPECT_EQ(annotated->label.sensitivity, Sensitivity::secret);
}

}  // namespace
}  // namespace molly::annotate
