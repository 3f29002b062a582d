#include "domain/adapter_share.h"

#include <gtest/gtest.h>

namespace molly::domain {
namespace {

TEST(AdapterShare, one_name_is_one_adapter_at_full_strength) {
    const auto shares = adapter_shares_from("law@1.0.0");
    ASSERT_TRUE(shares);
    EXPECT_EQ(*shares, (std::vector<AdapterShare>{{"law@1.0.0", 1}}));
    EXPECT_EQ(to_string(*shares), "law@1.0.0");
}

TEST(AdapterShare, several_come_with_their_scales_and_go_back) {
    const auto shares = adapter_shares_from("law*0.5,style@2.0.0-rc.1+b7,plain*-1");
    ASSERT_TRUE(shares);
    EXPECT_EQ(*shares, (std::vector<AdapterShare>{
                           {"law", 0.5F}, {"style@2.0.0-rc.1+b7", 1}, {"plain", -1}}));
    EXPECT_EQ(to_string(*shares), "law*0.5,style@2.0.0-rc.1+b7,plain*-1");
}

TEST(AdapterShare, what_is_no_name_or_no_scale_is_refused) {
    for (const char* text : {"", ",", "law,", ",law", "*2", "law*", "law*x", "law*1x", "law*nan",
                             "law*inf", "law*17", "law*1*2", "a,b,c,d,e,f,g,h,i"}) {
        const auto shares = adapter_shares_from(text);
        ASSERT_FALSE(shares) << text;
        EXPECT_EQ(shares.error().code(), ErrorCode::invalid_request) << text;
    }
    EXPECT_TRUE(adapter_shares_from("a,b,c,d,e,f,g,h"));
}

TEST(AdapterShare, more_than_twice_its_strength_is_refused_with_the_cure) {
    for (const char* text :
         {"dates*9", "dates*-2.1", "dates*1.5,dates", "dates@1.0.0,law,dates@2.0.0*1.5"}) {
        const auto shares = adapter_shares_from(text);
        ASSERT_FALSE(shares) << text;
        EXPECT_NE(shares.error().message().find("from -2 to 2"), std::string::npos) << text;
        EXPECT_NE(shares.error().message().find("leave the scale out"), std::string::npos);
        EXPECT_NE(shares.error().message_italian().find("toglierla"), std::string::npos);
    }
    EXPECT_TRUE(adapter_shares_from("dates*2,law*-2,style*1.9,style@1.0.0*0.1"));
}

}  // namespace
}  // namespace molly::domain
