#include "gateway/guard.h"

#include <gtest/gtest.h>

namespace molly::gateway {
namespace {

std::string verdict(const net::Headers& headers, const std::vector<std::string>& hosts = {},
                    const std::vector<std::string>& origins = {}) {
    const auto result = check_browser(headers, hosts, origins);
    return result ? "ok" : result.error().reason();
}

TEST(Guard, addresses_and_localhost_may_knock) {
    EXPECT_EQ(verdict({{"host", "127.0.0.1:8484"}}), "ok");
    EXPECT_EQ(verdict({{"host", "LocalHost:1"}}), "ok");
    EXPECT_EQ(verdict({{"host", "[::1]:8484"}}), "ok");
    EXPECT_EQ(verdict({{"host", "192.168.1.7"}}), "ok");
}

TEST(Guard, a_rebound_name_is_refused) {
    EXPECT_EQ(verdict({{"host", "evil.example"}}), "foreign_host");
    EXPECT_EQ(verdict({{"host", "127.0.0.1.evil.example:8484"}}), "foreign_host");
    EXPECT_EQ(verdict({{"host", "localhost.evil.example"}}), "foreign_host");
    EXPECT_EQ(verdict({{"host", ""}}), "foreign_host");
    EXPECT_EQ(verdict({{"host", "molly.lan:80"}}, {"molly.lan"}), "ok");
}

TEST(Guard, a_foreign_page_is_refused) {
    EXPECT_EQ(verdict({{"host", "127.0.0.1:8484"}, {"origin", "https://evil.example"}}),
              "foreign_origin");
    EXPECT_EQ(verdict({{"host", "127.0.0.1:8484"}, {"origin", "null"}}), "foreign_origin");
    EXPECT_EQ(verdict({{"host", "127.0.0.1:8484"}, {"origin", "http://127.0.0.1:9"}}),
              "foreign_origin");
    EXPECT_EQ(verdict({{"host", "127.0.0.1:8484"}, {"origin", "http://127.0.0.1:8484"}}), "ok");
    EXPECT_EQ(verdict({{"host", "127.0.0.1"}, {"origin", "https://app.example"}}, {},
                      {"https://app.example"}),
              "ok");
}

TEST(Guard, only_allowed_origins_get_cors_headers) {
    EXPECT_TRUE(cors_headers({{"origin", "https://evil.example"}}, {}).empty());
    const net::Headers headers =
        cors_headers({{"origin", "https://app.example"}}, {"https://app.example"});
    EXPECT_EQ(net::header(headers, "access-control-allow-origin"), "https://app.example");
}

TEST(Guard, keys_come_in_either_header) {
    EXPECT_EQ(presented_key({{"authorization", "Bearer molly-1"}}), "molly-1");
    EXPECT_EQ(presented_key({{"authorization", "bearer  molly-1 "}}), "molly-1");
    EXPECT_EQ(presented_key({{"x-api-key", "molly-2"}}), "molly-2");
    EXPECT_EQ(presented_key({{"authorization", "Basic abc"}, {"x-api-key", "molly-2"}}), "molly-2");
    EXPECT_EQ(presented_key({}), "");
}

TEST(Guard, loopback_is_an_address_not_a_name) {
    EXPECT_TRUE(is_loopback("127.0.0.1"));
    EXPECT_TRUE(is_loopback("::1"));
    EXPECT_TRUE(is_loopback("::ffff:127.0.0.1"));
    EXPECT_FALSE(is_loopback("127.evil"));
    EXPECT_FALSE(is_loopback("192.168.1.2"));
}

}  // namespace
}  // namespace molly::gateway
