#include "base/json.h"

#include <boost/json/monotonic_resource.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/utf8.h"

namespace molly {
namespace {

using testing::HasSubstr;

std::string repeat(std::string_view text, std::size_t times) {
    std::string all;
    for (std::size_t i = 0; i < times; ++i)
        all += text;
    return all;
}

// Case 10.
TEST(Json, ByteOrderMarkIsTolerated) {
    const auto value = parse_json("\xEF\xBB\xBF{\"a\":1}");
    ASSERT_TRUE(value) << value.error().message();
    EXPECT_EQ(to_text(*value), R"({"a":1})");
}

// Case 10.
TEST(Json, RefusesWhatIsNotStrictAndSaysWhere) {
    const std::pair<std::string, std::string_view> cases[] = {
        {"{\"a\":\"\xC4\xE3\xBA\xC3\"}", "at byte"},            // GBK
        {R"({"a":"\ud83d"})", "at byte"},                       // half a surrogate pair
        {R"({"a":"\ude00"})", "at byte"},                       // the other half
        {R"({"a":"x\u0000y"})", "NUL"},                         // NUL, escaped
        {std::string("{\"a\":\"x\0y\"}", 11), "at byte"},       // NUL, raw
        {repeat("[", 100'000), "at byte"},                      // too deep
        {R"({"model":"a","model":"b"})", "repeated key"},       // would bypass policy
        {R"({"model":"a","mod\u0065l":"b"})", "repeated key"},  // also when it hides
        {R"({"x":{"a":1,"a":2}})", "repeated key"},             // at any depth
        {R"({"a":1}{)", "at byte"},                             // trailing text
        {R"({"a":1,})", "at byte"},
        {R"({'a':1})", "at byte"},
        {R"({"a":NaN})", "at byte"},
        {R"({"a":1e999})", "number out of range"},
        {R"({"a":01})", "at byte"},
        {"", "at byte 0"},
        {"\xEF\xBB\xBF", "at byte 3"},
        {R"({"a":)", "at byte 5"},
        {"{\"a\":\"line\nbreak\"}", "at byte"},
    };
    for (const auto& [text, why] : cases) {
        const auto value = parse_json(text);
        ASSERT_FALSE(value) << text.substr(0, 40);
        EXPECT_EQ(value.error().code(), ErrorCode::invalid_request);
        EXPECT_EQ(value.error().reason(), "invalid_json");
        EXPECT_THAT(value.error().message(), HasSubstr(why)) << text.substr(0, 40);
    }
}

TEST(Json, DepthCountsArraysAndObjectsUpToTheLimit) {
    const JsonLimits limits = {.bytes_max = 1000, .depth_max = 8};
    EXPECT_TRUE(parse_json(repeat("[", 8) + repeat("]", 8), limits));
    EXPECT_FALSE(parse_json(repeat("[", 9) + repeat("]", 9), limits));
    EXPECT_FALSE(parse_json(repeat(R"({"a":)", 9) + "1" + repeat("}", 9), limits));
}

TEST(Json, TooManyBytesAreTooLarge) {
    const auto value = parse_json("[1,2,3]", {.bytes_max = 6, .depth_max = 8});
    ASSERT_FALSE(value);
    EXPECT_EQ(value.error().code(), ErrorCode::too_large);
    EXPECT_TRUE(parse_json("[1,2,3]", {.bytes_max = 7, .depth_max = 8}));
}

std::string wide_object(std::size_t keys, std::string_view last) {
    std::string text = "{";
    for (std::size_t i = 0; i < keys; ++i)
        text += "\"key" + std::to_string(i) + "\":{\"key0\":0},";
    return text + "\"" + std::string(last) + "\":0}";
}

TEST(Json, RepeatedKeysAreFoundInWideObjectsToo) {
    EXPECT_TRUE(parse_json(wide_object(5, "other")));
    EXPECT_TRUE(parse_json(wide_object(50'000, "other")));
    for (const std::string_view last : {"key0", "key31", "key32", "key33", "key49999"}) {
        const auto value = parse_json(wide_object(50'000, last));
        ASSERT_FALSE(value) << last;
        EXPECT_THAT(value.error().message(), HasSubstr("repeated key")) << last;
    }
}

TEST(Json, ValueMayLiveInStorageOfTheCaller) {
    json::monotonic_resource memory;
    const auto value =
        parse_json(R"({"a":["long enough not to be a short string",2]})", {}, &memory);
    ASSERT_TRUE(value);
    EXPECT_EQ(value->storage().get(), &memory);
    EXPECT_EQ(value->as_object().at("a").as_array().at(0).as_string().storage().get(), &memory);
}

TEST(Json, TextIsCompactAndExact) {
    constexpr std::string_view text =
        R"({"b":[1,-2,0.5,1e+300,18446744073709551615],"a":{},"c":[],"d":"\"\\\n\u0001è😀","e":null,"f":true})";
    const auto value = parse_json(text);
    ASSERT_TRUE(value) << value.error().message();
    EXPECT_EQ(to_text(*value), text);
    EXPECT_EQ(to_text(*parse_json("[1.0,1E2]")), "[1.0,100.0]");  // doubles stay doubles
    // Boost alone reads these one unit off in their last place.
    for (const std::string_view number :
         {"1.8446744073709552e+34", "0.30000000000000004", "-1.7976931348623157e+308", "5e-324"})
        EXPECT_EQ(to_text(*parse_json(number)), number);
}

TEST(Json, StringsAreEscapedAndAlwaysValidUtf8) {
    const std::pair<std::string_view, std::string_view> cases[] = {
        {"", R"("")"},
        {"a\"b\\c/\n\r\t\x01\x1f\x7f", "\"a\\\"b\\\\c/\\n\\r\\t\\u0001\\u001f\x7f\""},
        {"è😀", "\"è😀\""},
        {"a\xF0\x9F", "\"a\xEF\xBF\xBD\xEF\xBF\xBD\""},
        {"\xC0\xAF", "\"\xEF\xBF\xBD\xEF\xBF\xBD\""},
        {std::string_view("\0", 1), "\"\\u0000\""},
    };
    for (const auto& [text, wanted] : cases) {
        std::string out;
        append_json_string(out, text);
        EXPECT_EQ(out, wanted);
        EXPECT_TRUE(utf8_valid(out));
    }
}

}  // namespace
}  // namespace molly
