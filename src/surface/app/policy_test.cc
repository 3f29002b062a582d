#include <algorithm>

#include <gtest/gtest.h>

#include "app/firewall.h"
#include "app/policy_check.h"
#include "app/policy_explain.h"

namespace molly::app {
namespace {

constexpr std::string_view places = R"(
[engine]
jurisdiction = "IT"
[[target]]
name = "office"
tier = "T1"
url = "http://192.168.1.20:8080/v1"
jurisdiction = "IT"
[[target]]
name = "rented"
tier = "T2"
url = "https://gpu.example.org/v1"
jurisdiction = "DE"
[[target]]
name = "cloud"
tier = "T3"
url = "https://api.example.com/v1"
jurisdiction = "US"
)";

Config config_with(std::string_view rules) {
    auto config = parse_config(std::string(rules) + std::string(places), "t.toml");
    EXPECT_TRUE(config.has_value()) << (config ? "" : config.error().message());
    return config ? *std::move(config) : Config{};
}

bool remarked(std::string_view rules, std::string_view path, std::string_view words) {
    const auto remarks = remarks_on(config_with(rules));
    return std::any_of(remarks.begin(), remarks.end(), [&](const Remark& remark) {
        return remark.path.find(path) != std::string::npos &&
               remark.english.find(words) != std::string::npos && !remark.italian.empty();
    });
}

TEST(PolicyCheck, FindsNothingInRulesThatAreMeant) {
    const auto remarks = remarks_on(config_with(R"(
[[policy.rule]]
name = "hr"
tags = ["hr"]
tiers = ["T0"]
[[policy.rule]]
name = "italy"
tags = ["comune"]
residency = ["IT"]
)"));
    EXPECT_TRUE(remarks.empty()) << remarks.front().path << remarks.front().english;
}

TEST(PolicyCheck, TellsRulesThatNeverApplyOrChangeNothing) {
    EXPECT_TRUE(
        remarked("[[policy.rule]]\nname='a'\nat_least='secret'\nat_most='public'\n"
                 "tiers=['T0']\n",
                 "policy.rule[0] (a)", "never applies"));
    EXPECT_TRUE(remarked("[[policy.rule]]\nname='a'\nat_least='private'\npermit_t3=true\n", "(a)",
                         "never counts"));
    EXPECT_TRUE(remarked("[[policy.rule]]\nname='a'\nat_least='private'\ntiers=['T0','T1']\n",
                         "(a)", "no fewer"));
    EXPECT_TRUE(remarked("[[labels.rule]]\nname='a'\nphrases=['x']\nclass='public'\n",
                         "labels.rule[0] (a)", "raises nothing"));
}

TEST(PolicyCheck, TellsRulesThatStandBehindOthers) {
    constexpr std::string_view rules =
        "[[policy.rule]]\nname='wide'\ntiers=['T0']\n"
        "[[policy.rule]]\nname='narrow'\ntags=['hr']\ntiers=['T0','T1']\n";
    EXPECT_TRUE(remarked(rules, "(narrow)", "shadowed by rule 0 (wide)"));
    EXPECT_FALSE(remarked(rules, "(wide)", "shadowed"));
    constexpr std::string_view twins =
        "[[policy.rule]]\nname='one'\ntiers=['T0']\n[[policy.rule]]\nname='two'\ntiers=['T0']\n";
    EXPECT_TRUE(remarked(twins, "(two)", "shadowed"));
    EXPECT_FALSE(remarked(twins, "(one)", "shadowed"));
}

TEST(PolicyCheck, TellsRulesThatLeaveNobody) {
    EXPECT_TRUE(remarked("[[policy.rule]]\nname='a'\nresidency=['FR']\n", "(a)", "no declared"));
    EXPECT_FALSE(remarked("[[policy.rule]]\nname='a'\nresidency=['DE']\n", "(a)", "no declared"));
}

const Reach& reach_of(const PolicyExplanation& explained, std::string_view target) {
    const auto found = std::find_if(explained.targets.begin(), explained.targets.end(),
                                    [&](const Reach& reach) { return reach.target == target; });
    EXPECT_NE(found, explained.targets.end());
    return *found;
}

std::string first_change(const Reach& reach) {
    std::string out;
    if (reach.changes.empty()) return out;
    for (const Said& said : reach.changes.front())
        out += (out.empty() ? "" : " + ") + said.english;
    return out;
}

TEST(PolicyExplain, NamesTheSmallestChangeThatOpensATarget) {
    const Config config = config_with(R"(
[[labels.rule]]
name = "payroll"
phrases = ["busta paga"]
residency = ["IT"]
[[policy.rule]]
name = "hr"
tags = ["hr"]
tiers = ["T0"]
)");
    const auto request = request_from(R"({"model":"auto","messages":[{"role":"user","content":
        "La busta paga di marzo"}],"molly":{"tags":["hr"]}})");
    ASSERT_TRUE(request.has_value()) << request.error().message();
    const auto explained = explain_policy(config, *request);
    ASSERT_TRUE(explained.has_value()) << explained.error().message();
    EXPECT_EQ(explained->decision.rule, "hr");
    EXPECT_TRUE(std::any_of(explained->signals.begin(), explained->signals.end(),
                            [](const auto& signal) { return signal.source == "rule:payroll"; }));
    EXPECT_FALSE(reach_of(*explained, "local").by_policy);
    EXPECT_EQ(first_change(reach_of(*explained, "office")), "policy rule hr did not apply");
    EXPECT_EQ(first_change(reach_of(*explained, "rented")),
              "the class were standard + its content did not have to stay in IT + policy rule hr "
              "did not apply");
}

TEST(PolicyExplain, ARefusalIsExplainedToo) {
    const Config config =
        config_with("[[labels.rule]]\nname='a'\nphrases=['x']\nresidency=['FR']\n");
    const auto request = request_from(R"({"messages":[{"role":"user","content":"x"}]})");
    const auto explained = explain_policy(config, *request);
    ASSERT_TRUE(explained->refused.has_value());
    EXPECT_EQ(first_change(reach_of(*explained, "local")),
              "its content did not have to stay in FR");
}

TEST(Firewall, OpensWhatSomeRequestMayReach) {
    const auto exits = exits_of(config_with(""), {});
    ASSERT_EQ(exits.size(), 2U);
    EXPECT_EQ(exits[0].name, "office");
    EXPECT_TRUE(exits[0].address);
    EXPECT_EQ(exits[1].name, "rented");
    const std::string rules = nftables_of(exits, 1234);
    EXPECT_NE(rules.find("ip daddr 192.168.1.20 tcp dport 8080 accept"), std::string::npos);
    EXPECT_NE(rules.find("getent ahostsv4 gpu.example.org"), std::string::npos);
    EXPECT_NE(rules.find("skuid != 1234"), std::string::npos);
    EXPECT_EQ(rules.find("api.example.com"), std::string::npos);
}

TEST(Firewall, NothingOfTheConfigurationBecomesACommand) {
    const std::vector<Exit> exits = {{.name = "x\" accept; #\n",
                                      .tier = domain::Tier::t2,
                                      .host = "10.0.0.1",
                                      .port = 1,
                                      .address = true},
                                     {.name = "y",
                                      .tier = domain::Tier::t2,
                                      .host = "a$(reboot).example",
                                      .port = 443,
                                      .address = false}};
    const std::string rules = nftables_of(exits, 1);
    EXPECT_EQ(rules.find("reboot"), std::string::npos);
    EXPECT_NE(rules.find("comment \"T2 x__accept____\""), std::string::npos) << rules;
}

TEST(Firewall, APermitOpensItsThirdParty) {
    const auto exits =
        exits_of(config_with("[[policy.rule]]\nname='ask'\ntags=['ask']\nhours='08:00-19:00'\n"
                             "zone='Europe/Rome'\npermit_t3=true\n"),
                 {});
    ASSERT_EQ(exits.size(), 3U);
    EXPECT_EQ(exits[2].host, "api.example.com");
}

TEST(Firewall, ARuleForEverybodyClosesAndDownloadHostsOpen) {
    const auto exits = exits_of(config_with("[[policy.rule]]\nname='home'\ntiers=['T0','T1']\n"),
                                {"models.example"});
    ASSERT_EQ(exits.size(), 2U);
    EXPECT_EQ(exits[0].name, "office");
    EXPECT_EQ(exits[1].host, "models.example");
    EXPECT_EQ(exits[1].port, 443);
}

TEST(RulesHash, IsOfTheRulesAndNotOfTheLayout) {
    const std::string one = config_with("[[policy.rule]]\nname='a'\ntiers=['T0']\n").rules_hash;
    EXPECT_EQ(one.size(), 16U);
    EXPECT_EQ(one, config_with("# x\n[[policy.rule]]\ntiers = [ 'T0' ]\nname = 'a'\n").rules_hash);
    EXPECT_NE(one, config_with("[[policy.rule]]\nname='a'\ntiers=['T1']\n").rules_hash);
}

}  // namespace
}  // namespace molly::app
