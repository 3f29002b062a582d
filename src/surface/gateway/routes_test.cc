#include "gateway/routes.h"

#include <gtest/gtest.h>

namespace molly::gateway {
namespace {

using dialects::Face;

TEST(Routes, every_dialect_has_its_paths) {
    EXPECT_EQ(find_route("POST", "/v1/chat/completions").face, Face::openai_chat);
    EXPECT_EQ(find_route("POST", "/v1/messages").face, Face::anthropic_messages);
    EXPECT_EQ(find_route("POST", "/api/generate").face, Face::ollama_generate);
    EXPECT_EQ(find_route("POST", "/v1/messages/count_tokens").route, Route::count_tokens);
    EXPECT_EQ(find_route("HEAD", "/").route, Route::greeting);
}

TEST(Routes, tails_keep_their_slashes) {
    EXPECT_EQ(find_route("GET", "/v1/models/local/adapter").tail, "local/adapter");
    EXPECT_EQ(find_route("GET", "/v1/models").route, Route::models);
    EXPECT_EQ(find_route("GET", "/v1/models/").route, Route::unknown);
    EXPECT_EQ(find_route("DELETE", "/molly/v1/keys/key_1").tail, "key_1");
}

TEST(Routes, a_wrong_method_says_the_right_ones) {
    const Found found = find_route("PUT", "/molly/v1/keys");
    EXPECT_EQ(found.route, Route::wrong_method);
    EXPECT_EQ(found.allow, "GET, POST");
    EXPECT_EQ(find_route("GET", "/nothing").route, Route::unknown);
    EXPECT_EQ(find_route("GET", "/v1/chat/completions/").route, Route::unknown);
}

TEST(Routes, errors_take_the_shape_of_the_path) {
    EXPECT_EQ(shape_of("/v1/chat/completions"), Shape::openai);
    EXPECT_EQ(shape_of("/v1/messages"), Shape::anthropic);
    EXPECT_EQ(shape_of("/api/chat"), Shape::ollama);
    EXPECT_EQ(shape_of("/molly/v1/health"), Shape::molly);
    EXPECT_EQ(shape_of("/elsewhere"), Shape::molly);
}

TEST(Routes, query_values_are_decoded) {
    EXPECT_EQ(query_value("limit=3&member=anna%20b", "member"), "anna b");
    EXPECT_EQ(query_value("limit=3", "member"), "");
    EXPECT_EQ(query_value("member", "member"), "");
    EXPECT_EQ(query_value("a=%4", "a"), "%4");
}

}  // namespace
}  // namespace molly::gateway
