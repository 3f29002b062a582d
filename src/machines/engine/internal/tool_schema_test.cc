#include "engine/internal/tool_schema.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace molly::engine {
namespace {

json::value value_of(std::string_view text) {
    return *parse_json(text);
}

json::value tame(std::string_view schema) {
    const auto tamed = tame_tool_schema(schema);
    EXPECT_TRUE(tamed) << tamed.error().message();
    return tamed ? value_of(*tamed) : json::value();
}

TEST(ToolSchema, keeps_what_is_harmless) {
    constexpr auto schema = R"({"type":"object","title":"T","properties":{"a":{"type":"string",)"
                            R"("description":"d","maxLength":10},"b":{"$ref":"#/$defs/x"}},)"
                            R"("required":["a"],"$defs":{"x":{"type":"integer","minimum":1}}})";
    EXPECT_EQ(tame(schema), value_of(schema));
}

TEST(ToolSchema, drops_what_the_conversion_gets_wrong) {
    EXPECT_EQ(tame(R"({"properties":{"a":{"type":"string","pattern":"^a$","maxLength":99999}}})"),
              value_of(R"({"properties":{"a":{"type":"string"}}})"));
    EXPECT_EQ(tame(R"({"properties":{"a":{"$ref":"#/nowhere"},"b":{"$ref":"https://x.org"}}})"),
              value_of(R"({"properties":{"a":{},"b":{}}})"));
    EXPECT_EQ(tame(R"({"properties":{"a":true,"b":{"minimum":true,"type":7,"enum":[]}}})"),
              value_of(R"({"properties":{"a":{},"b":{}}})"));
    EXPECT_EQ(tame(R"({"allOf":[{"$ref":"#/$defs/a"}],"properties":[],"$defs":{"a":{}}})"),
              value_of(R"({"$defs":{"a":{}}})"));
}

TEST(ToolSchema, choices_of_text_get_a_type) {
    EXPECT_EQ(tame(R"({"properties":{"a":{"enum":["x","y"]},"b":{"enum":["x",1]}}})"),
              value_of(R"({"properties":{"a":{"enum":["x","y"],"type":"string"},)"
                       R"("b":{"enum":["x",1]}}})"));
}

TEST(ToolSchema, an_absent_schema_takes_no_arguments) {
    EXPECT_EQ(tame(""), value_of(R"({"type":"object","properties":{}})"));
}

TEST(ToolSchema, refuses_what_is_no_schema_or_too_much) {
    std::string wide = R"({"anyOf":[)";
    for (int i = 0; i < 30000; ++i)
        wide += i > 0 ? ",{}" : "{}";
    const std::string name(300, 'n');
    for (const std::string& schema :
         {std::string("[]"), std::string("{"), wide + "]}",
          R"({"properties":{")" + name + R"(":{}}})", std::string(100, '[')}) {
        const auto tamed = tame_tool_schema(schema);
        ASSERT_FALSE(tamed) << schema.substr(0, 40);
        EXPECT_EQ(tamed.error().code(), ErrorCode::invalid_request);
    }
}

TEST(ToolSchema, many_optional_properties_become_any_object) {
    std::string many = R"({"type":"object","properties":{)";
    for (int i = 0; i < 500; ++i)
        many += (i > 0 ? ",\"p" : "\"p") + std::to_string(i) + "\":{}";
    EXPECT_EQ(tame(many + "}}"), value_of(R"({"type":"object"})"));
}

}  // namespace
}  // namespace molly::engine
