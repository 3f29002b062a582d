#include "engine/internal/answer_text.h"

#include <gtest/gtest.h>

namespace molly::engine {
namespace {

using Tokens = std::vector<std::string>;

struct Outcome {
    Tokens pieces;  // what a reader of the stream sees
    std::string whole;
    bool stopped = false;
};

Outcome play(const Tokens& tokens, std::vector<std::string> stops) {
    AnswerText text(std::move(stops));
    Outcome outcome;
    const auto take = [&](const std::string& piece) {
        EXPECT_TRUE(utf8_valid(piece));
        if (!piece.empty()) outcome.pieces.push_back(piece);
        outcome.whole += piece;
    };
    for (const auto& token : tokens)
        take(text.push(token));
    take(text.finish());
    outcome.stopped = text.stopped();
    return outcome;
}

TEST(AnswerText, holds_a_split_code_point) {
    const auto outcome = play({"\xF0\x9F", "\x98\x80", "!"}, {});
    EXPECT_EQ(outcome.pieces, (Tokens{"😀", "!"}));
}

TEST(AnswerText, drops_a_tail_cut_by_the_limit) {
    EXPECT_EQ(play({"ciao ", "\xF0\x9F"}, {}).whole, "ciao ");
}

TEST(AnswerText, joins_the_family_byte_by_byte) {
    const std::string family = "👨‍👩‍👧";
    ASSERT_EQ(family.size(), 18U);
    Tokens bytes;
    for (const char byte : family)
        bytes.emplace_back(1, byte);
    EXPECT_EQ(play(bytes, {}).whole, family);
    EXPECT_EQ(play(bytes, {}).pieces.size(), 5U);
}

TEST(AnswerText, stops_across_tokens) {
    const auto outcome = play({"ABC", "DEF", "G", "HI", "J", "K"}, {"DEFGHIJ"});
    EXPECT_EQ(outcome.pieces, Tokens{"ABC"});
    EXPECT_TRUE(outcome.stopped);
}

TEST(AnswerText, gives_back_what_was_no_stop) {
    const auto outcome = play({"\nUser", "name"}, {"\nUser:"});
    EXPECT_EQ(outcome.whole, "\nUsername");
    EXPECT_FALSE(outcome.stopped);
    EXPECT_EQ(play({"\nUser"}, {"\nUser:"}).whole, "\nUser");
}

TEST(AnswerText, holds_only_a_beginning_of_a_stop) {
    AnswerText text({"END"});
    EXPECT_EQ(text.push("the EN"), "the ");
    EXPECT_EQ(text.push("E"), "EN");
    EXPECT_EQ(text.push("ND and more"), "");
    EXPECT_TRUE(text.stopped());
    EXPECT_EQ(text.push("more"), "");
    EXPECT_EQ(text.finish(), "");
}

TEST(AnswerText, stops_inside_json_and_at_an_emoji) {
    EXPECT_EQ(play({"{\"a\": \"x", "STOP", "\"}"}, {"STOP"}).whole, "{\"a\": \"x");
    EXPECT_EQ(play({"a\xF0\x9F", "\x98\x80", "b"}, {"😀"}).whole, "a");
}

TEST(AnswerText, takes_the_earliest_of_several_stops) {
    EXPECT_EQ(play({"one two three"}, {"three", "two", ""}).whole, "one ");
}

TEST(AnswerText, replaces_bytes_that_are_no_text) {
    EXPECT_EQ(play({"a\xFF", "b"}, {}).whole,
              "a\xEF\xBF\xBD"
              "b");
}

}  // namespace
}  // namespace molly::engine
