#include "engine/internal/schema_grammar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "engine/internal/grammar.h"
#include "engine/internal/grammar_matcher.h"
#include "engine/internal/number_grammar.h"
#include "engine/internal/pattern_grammar.h"

namespace molly::engine {
namespace {

/// Whether the whole text is in the language of the grammar.
bool accepts(const std::string& gbnf, std::string_view text) {
    auto grammar = Grammar::parse(gbnf);
    EXPECT_TRUE(grammar) << grammar.error().message() << "\n" << gbnf;
    if (!grammar) return false;
    GrammarMatcher matcher(std::make_shared<const Grammar>(*std::move(grammar)));
    const auto state = matcher.after(matcher.current(), text);
    EXPECT_TRUE(state);
    return state && *state != GrammarMatcher::dead && matcher.may_end(*state);
}

bool fits(std::string_view schema, std::string_view text) {
    const auto gbnf = schema_grammar(schema, true);
    EXPECT_TRUE(gbnf) << gbnf.error().message();
    return gbnf && accepts(*gbnf, text);
}

std::string refusal(std::string_view schema) {
    const auto gbnf = schema_grammar(schema, true);
    if (!gbnf) {
        EXPECT_EQ(gbnf.error().code(), ErrorCode::invalid_request);
        return gbnf.error().message();
    }
    const auto grammar = Grammar::parse(*gbnf);
    if (!grammar) return grammar.error().message();
    const GrammarMatcher matcher(std::make_shared<const Grammar>(*grammar));
    return matcher.current() == GrammarMatcher::dead ? "nothing fits" : "";
}

TEST(SchemaGrammar, objects_have_their_properties_in_order) {
    constexpr auto schema = R"({"type":"object","properties":{"a":{"type":"string"},
        "b":{"type":"integer"},"c":{"type":"boolean"}},"required":["b"],
        "additionalProperties":false})";
    EXPECT_TRUE(fits(schema, R"({"a": "x", "b": 1, "c": true})"));
    EXPECT_TRUE(fits(schema, R"({"b":1})"));
    EXPECT_TRUE(fits(schema, R"({ "b": 12,"c": false })"));
    EXPECT_FALSE(fits(schema, R"({"a": "x"})"));
    EXPECT_FALSE(fits(schema, R"({"b": 1,})"));
    EXPECT_FALSE(fits(schema, R"({,"b": 1})"));
    EXPECT_FALSE(fits(schema, R"({"b": 1, "d": 1})"));
    EXPECT_FALSE(fits(schema, R"({"b": 1.5})"));
    EXPECT_FALSE(fits(schema, R"({"b": 01})"));
}

TEST(SchemaGrammar, a_required_name_without_a_schema_is_written) {
    constexpr auto schema = R"({"type":"object","required":["x"]})";
    EXPECT_TRUE(fits(schema, R"({"x": [1, {"y": null}]})"));
    EXPECT_FALSE(fits(schema, R"({})"));
}

TEST(SchemaGrammar, texts_hold_only_what_json_allows) {
    constexpr auto schema = R"({"type":"string"})";
    EXPECT_TRUE(fits(schema, R"("è 😀 \n \u00e8 \" \\ ")"));
    EXPECT_FALSE(fits(schema, "\"a\nb\""));
    EXPECT_FALSE(fits(schema, R"("\ud83d")"));  // a lone surrogate is no text
    EXPECT_FALSE(fits(schema, R"("a"b")"));
    EXPECT_FALSE(fits(schema, R"("\x")"));
}

TEST(SchemaGrammar, patterns_match_the_decoded_text) {
    // The regular expression ^hello\\!$ : the text hello\! , which JSON writes hello\\!
    constexpr auto schema = R"({"type":"string","pattern":"^hello\\\\!$"})";
    EXPECT_TRUE(fits(schema, R"("hello\\!")"));
    EXPECT_FALSE(fits(schema, R"("hello\!")"));
    constexpr auto any = R"({"type":"string","pattern":"^.*$"})";
    EXPECT_TRUE(fits(any, R"("a \" b")"));
    EXPECT_FALSE(fits(any, R"("a " b")"));
    constexpr auto date =
        R"({"type":"string","pattern":"^\\d{4}-(0[1-9]|1[0-2])(?:x|y)?[^a-z\\]]$"})";
    EXPECT_TRUE(fits(date, R"("2026-11yA")"));
    EXPECT_TRUE(fits(date, R"("2026-01è")"));
    EXPECT_FALSE(fits(date, R"("2026-13yA")"));
    EXPECT_FALSE(fits(date, R"("2026-11y]")"));
}

TEST(SchemaGrammar, patterns_that_cannot_be_kept_are_refused) {
    for (const char* pattern :
         {"^(?=a)b$", "^a(?!b)$", "(a", "a)", "[a", "*a", "^\\\\bword\\\\b$", "^\\\\1$", "a^b",
          "^a|b$", "x{3,2}", "\\\\p{L}", "a{9999}", "a**"}) {
        const auto schema = R"({"type":"string","pattern":")" + std::string(pattern) + "\"}";
        EXPECT_NE(refusal(schema), "") << pattern;
        EXPECT_TRUE(schema_grammar(schema, false)) << pattern;
    }
}

TEST(SchemaGrammar, counts_and_lengths) {
    constexpr auto text = R"({"type":"string","minLength":2,"maxLength":3})";
    EXPECT_FALSE(fits(text, R"("a")"));
    EXPECT_TRUE(fits(text, R"("è\n")"));
    EXPECT_FALSE(fits(text, R"("abcd")"));
    constexpr auto list =
        R"({"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":2})";
    EXPECT_FALSE(fits(list, "[]"));
    EXPECT_TRUE(fits(list, "[1]"));
    EXPECT_TRUE(fits(list, "[1, 2]"));
    EXPECT_FALSE(fits(list, "[1, 2, 3]"));
    EXPECT_TRUE(fits(R"({"type":"array","items":{"type":"null"}})", "[]"));
    constexpr auto pair = R"({"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],
        "items":false})";
    EXPECT_TRUE(fits(pair, R"([1, "a"])"));
    EXPECT_FALSE(fits(pair, R"([1])"));
}

TEST(SchemaGrammar, whole_numbers_keep_their_bounds) {
    const std::vector<std::pair<std::int64_t, std::int64_t>> ranges = {
        {0, 0}, {0, 9}, {3, 7}, {5, 123}, {99, 101}, {-5, 5}, {-120, -7}, {-1, 1000}, {10, 99}};
    for (const auto& [low, high] : ranges) {
        const std::string gbnf = "root ::= " + integer_grammar(low, high);
        const auto grammar = Grammar::parse(gbnf);
        ASSERT_TRUE(grammar) << gbnf;
        const auto shared = std::make_shared<const Grammar>(*grammar);
        GrammarMatcher matcher(shared);
        for (std::int64_t value = -1100; value <= 1100; ++value) {
            const auto state = matcher.after(matcher.current(), std::to_string(value));
            const bool in = *state != GrammarMatcher::dead && matcher.may_end(*state);
            ASSERT_EQ(in, low <= value && value <= high) << value << " in " << low << ".." << high;
        }
    }
}

TEST(SchemaGrammar, numbers_keep_their_bounds) {
    constexpr auto share = R"({"type":"number","minimum":0,"maximum":1})";
    for (const char* good : {"0", "0.5", "1", "0.999"})
        EXPECT_TRUE(fits(share, good)) << good;
    for (const char* bad : {"1.5", "-0.5", "2", "1e5"})
        EXPECT_FALSE(fits(share, bad)) << bad;
    EXPECT_FALSE(fits(R"({"type":"number","exclusiveMinimum":0})", "0"));
    EXPECT_TRUE(fits(R"({"type":"number","exclusiveMinimum":0})", "1.25"));
    EXPECT_TRUE(fits(R"({"type":"integer","minimum":-3})", "-3"));
    EXPECT_TRUE(fits(R"({"type":"number"})", "-1.5e-7"));
    EXPECT_NE(refusal(R"({"type":"integer","minimum":2,"maximum":1})"), "");
}

TEST(SchemaGrammar, alternatives_and_choices) {
    constexpr auto schema = R"({"anyOf":[{"type":"null"},{"enum":["a\"b",2]},{"const":{"x":1}}]})";
    for (const char* good : {"null", R"("a\"b")", "2", R"({"x":1})"})
        EXPECT_TRUE(fits(schema, good)) << good;
    EXPECT_FALSE(fits(schema, "3"));
    EXPECT_TRUE(fits(R"({"type":["string","null"]})", "null"));
    constexpr auto told_apart = R"({"oneOf":[
        {"type":"object","properties":{"k":{"const":"a"}},"required":["k"]},
        {"type":"object","properties":{"k":{"const":"b"}},"required":["k"]}]})";
    EXPECT_TRUE(fits(told_apart, R"({"k": "b"})"));
    EXPECT_NE(refusal(R"({"oneOf":[{"type":"integer"},{"type":"number"}]})"), "");
}

TEST(SchemaGrammar, recursion_through_references) {
    constexpr auto tree = R"({"$ref":"#/$defs/node","$defs":{"node":{"type":"object",
        "properties":{"value":{"type":"integer"},
        "children":{"type":"array","items":{"$ref":"#/$defs/node"}}},"required":["value"]}}})";
    EXPECT_TRUE(fits(tree, R"({"value": 1, "children": [{"value": 2, "children": []}]})"));
    EXPECT_FALSE(fits(tree, R"({"value": 1, "children": [{"children": []}]})"));
}

TEST(SchemaGrammar, strict_refuses_what_it_cannot_keep) {
    for (const char* schema :
         {R"({"type":"object","patternProperties":{"^x":{}}})",
          R"({"type":"array","uniqueItems":true})", R"({"type":"integer","multipleOf":3})",
          R"({"not":{"type":"string"}})", R"({"if":{},"then":{}})",
          R"({"type":"object","minProperties":2})", R"({"allOf":[{"type":"object"},{}]})",
          R"({"type":"string","pattern":"^a$","maxLength":9})", R"({"contains":{}})"}) {
        EXPECT_THAT(refusal(schema), testing::HasSubstr("strict")) << schema;
        EXPECT_TRUE(schema_grammar(schema, false)) << schema;
    }
}

TEST(SchemaGrammar, hostile_schemas_are_refused_in_time) {
    std::string deep;
    for (int i = 0; i < 5000; ++i)
        deep += R"({"items":)";
    std::string nested = R"({"type":"string","maxLength":9999})";
    for (int i = 0; i < 6; ++i)
        nested = R"({"type":"array","minItems":9999,"items":)" + nested + "}";
    std::string wide = R"({"type":"object","properties":{)";
    for (int i = 0; i < 20000; ++i)
        wide += (i > 0 ? ",\"p" : "\"p") + std::to_string(i) + R"(":{"type":"string"})";
    std::string lengths = R"({"type":"object","properties":{)";
    for (int i = 0; i < 100; ++i)
        lengths += (i > 0 ? ",\"p" : "\"p") + std::to_string(i) + R"(":{"maxLength":9999})";
    const std::string parens(3000, '(');
    for (
        const std::string& schema :
        {deep, wide + "}}", lengths + "}}", std::string("{\"pattern\":\"" + parens + "\"}"),
         std::string(
             R"({"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}})"),
         std::string(R"({"$ref":"#"})"), std::string(R"({"$ref":"https://example.com/x"})"),
         std::string(R"({"$ref":"#/nowhere"})"), std::string(R"({"minItems":999999999})"),
         std::string(R"({"type":"array","items":false,"minItems":1})"), std::string("[]"),
         std::string("{"), std::string("false")}) {
        EXPECT_NE(refusal(schema), "") << schema.substr(0, 80);
    }
    EXPECT_EQ(refusal(nested), "");  // big, but its parts are shared
}

}  // namespace
}  // namespace molly::engine
