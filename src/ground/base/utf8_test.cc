#include "base/utf8.h"

#include <gtest/gtest.h>

namespace molly {
namespace {

constexpr std::string_view family = "👨‍👩‍👧‍👦";

TEST(Utf8, LengthOfTheFirstCodePoint) {
    const std::pair<std::string_view, std::size_t> cases[] = {
        {"", 0},
        {"a", 1},
        {"è", 2},
        {"€", 3},
        {"😀", 4},
        {"\x80", 0},              // a continuation alone
        {"\xC0\xAF", 0},          // overlong
        {"\xE0\x80\xAF", 0},      // overlong
        {"\xED\xA0\x80", 0},      // a surrogate
        {"\xF4\x90\x80\x80", 0},  // above U+10FFFF
        {"\xF0\x9F\x98", 0},      // cut
        {"\xFF", 0},
    };
    for (const auto& [text, length] : cases)
        EXPECT_EQ(utf8_length(text), length) << text;
}

TEST(Utf8, IncompleteTail) {
    const std::pair<std::string_view, std::size_t> cases[] = {
        {"", 0},         {"abc", 0},          {"è", 0},        {"a\xC3", 1},
        {"\xE2\x82", 2}, {"\xF0\x9F\x98", 3}, {"😀", 0},       {"\x80\x80\x80", 0},
        {"\xC3\xA8", 0}, {"\xED\xA0", 0},     {"a\xF0\x9F", 2}};
    for (const auto& [text, tail] : cases)
        EXPECT_EQ(utf8_incomplete_tail(text), tail) << text;
}

// Case 1: tokens cut code points anywhere.
TEST(Utf8Stream, PiecesOfAnySizeGiveBackTheText) {
    const std::string text = "Ciao " + std::string(family) + " è €!";
    ASSERT_EQ(family.size(), 25U);
    for (std::size_t size = 1; size <= text.size(); ++size) {
        Utf8Stream stream;
        std::string all;
        for (std::size_t at = 0; at < text.size(); at += size) {
            const std::string piece = stream.push(std::string_view(text).substr(at, size));
            EXPECT_TRUE(utf8_valid(piece));
            all += piece;
        }
        EXPECT_EQ(all, text);
        EXPECT_FALSE(stream.holding());
    }
}

// Case 1: the token limit cuts; the half is held and never comes out.
TEST(Utf8Stream, HalfACodePointIsHeld) {
    Utf8Stream stream;
    EXPECT_EQ(stream.push("ok \xF0\x9F"), "ok ");
    EXPECT_TRUE(stream.holding());
    EXPECT_EQ(stream.push("\x98\x80"), "😀");
    EXPECT_FALSE(stream.holding());
}

TEST(Utf8Stream, InvalidBytesAreReplaced) {
    Utf8Stream stream;
    EXPECT_EQ(stream.push("a\xFF"
                          "b"),
              "a\xEF\xBF\xBD"
              "b");
    EXPECT_EQ(stream.push("\xF0\x9F"), "");
    EXPECT_EQ(stream.push("x"), "\xEF\xBF\xBD\xEF\xBF\xBDx");
}

// Case 27: offsets are bytes; code points become bytes by walking.
TEST(Utf8, CodePointOffsetsBecomeByteOffsets) {
    constexpr std::string_view text = "Ciao 😀 sono Zoè Rossi";
    const auto bytes_of = [&](std::size_t code_points) {
        std::size_t at = 0;
        for (std::size_t i = 0; i < code_points; ++i)
            at += utf8_length(text.substr(at));
        return at;
    };
    EXPECT_EQ(bytes_of(12), 15U);
    EXPECT_EQ(bytes_of(21), 25U);
    EXPECT_EQ(text.substr(15, 10), "Zoè Rossi");
}

}  // namespace
}  // namespace molly
