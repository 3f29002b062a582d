#include "app/config.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/config_reader.h"

namespace molly::app {
namespace {

using ::testing::HasSubstr;

std::string fault_of(std::string_view text) {
    const auto config = parse_config(text, "test.toml");
    return config ? "no fault" : config.error().message();
}

TEST(Config, the_printed_default_equals_the_built_in_one) {
    const auto printed = parse_config(default_config(), "default");
    ASSERT_TRUE(printed) << printed.error().message();
    const auto empty = parse_config("", "empty");
    ASSERT_TRUE(empty) << empty.error().message();
    EXPECT_EQ(printed->server.port, empty->server.port);
    EXPECT_EQ(printed->server.address, empty->server.address);
    EXPECT_EQ(printed->server.body_bytes_max, empty->server.body_bytes_max);
    EXPECT_EQ(printed->server.header_bytes_max, empty->server.header_bytes_max);
    EXPECT_EQ(printed->server.connections_max, empty->server.connections_max);
    EXPECT_EQ(printed->server.header_timeout, empty->server.header_timeout);
    EXPECT_EQ(printed->server.body_timeout, empty->server.body_timeout);
    EXPECT_EQ(printed->server.idle_timeout, empty->server.idle_timeout);
    EXPECT_EQ(printed->server.write_timeout, empty->server.write_timeout);
    EXPECT_EQ(printed->gateway.json.depth_max, empty->gateway.json.depth_max);
    EXPECT_EQ(printed->gateway.json.bytes_max, empty->gateway.json.bytes_max);
    EXPECT_EQ(printed->gateway.keep_alive, empty->gateway.keep_alive);
    EXPECT_EQ(printed->pipeline.request_timeout, empty->pipeline.request_timeout);
    EXPECT_EQ(printed->stop_patience, empty->stop_patience);
    EXPECT_EQ(printed->engine.target.id, empty->engine.target.id);
    EXPECT_EQ(printed->engine.target.quality, empty->engine.target.quality);
    EXPECT_EQ(printed->engine.limits.sequences_max, empty->engine.limits.sequences_max);
    EXPECT_EQ(printed->engine.limits.step_tokens_max, empty->engine.limits.step_tokens_max);
    EXPECT_EQ(printed->engine.limits.context_tokens_max, empty->engine.limits.context_tokens_max);
    EXPECT_EQ(printed->engine.limits.inbox_jobs_max, empty->engine.limits.inbox_jobs_max);
    EXPECT_EQ(printed->engine.limits.answer_tokens_default,
              empty->engine.limits.answer_tokens_default);
    EXPECT_EQ(printed->store.queue_max, empty->store.queue_max);
    EXPECT_EQ(printed->store.durability, empty->store.durability);
    for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(printed->store.retention[i].traces, empty->store.retention[i].traces);
        EXPECT_EQ(printed->store.retention[i].responses, empty->store.retention[i].responses);
        EXPECT_EQ(printed->store.retention[i].responses_for,
                  empty->store.retention[i].responses_for);
    }
    EXPECT_EQ(printed->labels.default_class, empty->labels.default_class);
    EXPECT_EQ(printed->routing.attempts_max, empty->routing.attempts_max);
    EXPECT_EQ(printed->routing.failures_to_open, empty->routing.failures_to_open);
    EXPECT_EQ(printed->routing.open_for, empty->routing.open_for);
    EXPECT_EQ(printed->routing.latency_reference, empty->routing.latency_reference);
    EXPECT_EQ(printed->routing.cost_reference, empty->routing.cost_reference);
    EXPECT_EQ(printed->routing.alias_default, empty->routing.alias_default);
    EXPECT_TRUE(printed->targets.empty());
}

TEST(Config, says_when_drafts_are_checked_and_who_drafts) {
    const auto config = parse_config(
        "[engine]\nspeculation=\"off\"\ndraft_tokens_max=4\ndraft_model=\"small\"\n", "test");
    ASSERT_TRUE(config) << config.error().message();
    EXPECT_EQ(config->engine.limits.speculation, engine::Speculation::off);
    EXPECT_EQ(config->engine.limits.draft_tokens_max, 4U);
    EXPECT_EQ(config->engine.draft_model, "small");
    EXPECT_THAT(fault_of("[engine]\nspeculation=\"often\"\n"), HasSubstr("measured"));
    EXPECT_THAT(fault_of("[engine]\ndraft_tokens_max=0\n"), HasSubstr("draft_tokens_max"));
}

TEST(Config, says_whose_answers_are_drafted_here) {
    const auto target = [](const std::string& lines) {
        return "[[target]]\nname=\"a\"\nurl=\"https://a.example/v1\"\n" + lines;
    };
    const auto config = parse_config(target("tier=\"T1\"\ndrafts=\"measured\"\n"), "test");
    ASSERT_TRUE(config) << config.error().message();
    EXPECT_EQ(config->targets[0]->drafts, domain::Drafts::measured);
    EXPECT_EQ(parse_config(target("tier=\"T1\"\n"), "test")->targets[0]->drafts,
              domain::Drafts::off);
    EXPECT_THAT(fault_of(target("tier=\"T1\"\ndrafts=\"often\"\n")), HasSubstr("measured"));
    EXPECT_THAT(fault_of(target("tier=\"T3\"\ndrafts=\"always\"\n")),
                HasSubstr("target[0].drafts: T3 checks no drafts"));
}

TEST(Config, every_commented_example_of_the_default_parses) {
    std::string text;
    std::string_view rest = default_config();
    while (!rest.empty()) {
        const auto end = std::min(rest.find('\n'), rest.size() - 1);
        std::string_view line = rest.substr(0, end + 1);
        rest.remove_prefix(end + 1);
        const bool example =
            line.starts_with("# [[") ||
            (line.starts_with("# ") && line.find(" = ") != line.npos &&
             line.find_first_of("\"[tf0123456789", line.find(" = ")) == line.find(" = ") + 3);
        text += example ? line.substr(2) : line;
    }
    const auto config = parse_config(text, "examples");
    ASSERT_TRUE(config) << config.error().message();
    ASSERT_EQ(config->targets.size(), 1U);
    EXPECT_EQ(config->targets[0]->endpoint.host, "192.168.1.20");
    EXPECT_EQ(config->targets[0]->endpoint.port, 8080);
    EXPECT_EQ(config->targets[0]->endpoint.path, "/v1");
    EXPECT_EQ(config->labels.rules.size(), 1U);
    ASSERT_EQ(config->policy.rules.size(), 2U);
    EXPECT_TRUE(config->policy.rules[1].permit_t3);
    EXPECT_EQ(config->policy.rules[1].hours->zone, "Europe/Rome");
}

TEST(Config, policy_rules_that_say_nothing_or_something_else_are_named) {
    const auto rule = [](const std::string& lines) {
        return fault_of("[[policy.rule]]\nname=\"a\"\n" + lines);
    };
    EXPECT_THAT(rule("members=[\"ada\"]\n"),
                HasSubstr("policy.rule[0].name: the rule has no effect"));
    EXPECT_THAT(rule("permit_t3=true\nclasses=[\"top\"]\n"), HasSubstr("policy.rule[0].classes"));
    EXPECT_THAT(rule("permit_t3=true\nhours=\"8-19\"\nzone=\"UTC\"\n"),
                HasSubstr("policy.rule[0].hours: hours must be like"));
    EXPECT_THAT(rule("permit_t3=true\nhours=\"08:00-19:00\"\n"), HasSubstr("zone must be"));
    EXPECT_THAT(rule("permit_t3=true\nzone=\"UTC\"\n"), HasSubstr("policy.rule[0].zone"));
    EXPECT_THAT(rule("redacted_counts_as=\"public\"\n"), HasSubstr("\"standard\" only"));
    EXPECT_THAT(rule("jurisdictions=[\"US\"]\nresidency=[\"IT\"]\n"),
                HasSubstr("policy.rule[0].jurisdictions"));
}

TEST(Config, unknown_names_are_named_with_line_and_cure) {
    EXPECT_EQ(fault_of("[gateway]\nprot = 1\n"),
              "test.toml:2: gateway.prot: unknown option; did you mean `port`?");
    EXPECT_THAT(fault_of("[gatewya]\n"), HasSubstr("did you mean `gateway`?"));
    EXPECT_THAT(
        fault_of("[[target]]\nname=\"a\"\ntier=\"T1\"\nurl=\"http://10.0.0.1\"\ncolour=1\n"),
        HasSubstr("test.toml:5: target[0].colour: unknown option"));
}

TEST(Config, wrong_types_and_ranges_are_named) {
    EXPECT_EQ(fault_of("[gateway]\nport = \"80\"\n"),
              "test.toml:2: gateway.port: must be a whole number from 0 to 65535");
    EXPECT_THAT(fault_of("[gateway]\nport = 70000\n"), HasSubstr("from 0 to 65535"));
    EXPECT_THAT(fault_of("gateway = 3\n"), HasSubstr("must be a section: [gateway]"));
    EXPECT_THAT(fault_of("[labels]\ndefault_class = \"top\"\n"),
                HasSubstr("must be one of public"));
    EXPECT_THAT(fault_of("[[policy.rule]]\nname=\"a\"\ntiers=[\"T9\"]\n"),
                HasSubstr("policy.rule[0].tiers: unknown tier \"T9\""));
    EXPECT_THAT(fault_of("[gateway\n"), HasSubstr("test.toml:1"));
}

TEST(Config, all_faults_come_at_once) {
    const std::string faults = fault_of("[gateway]\nport = true\nhost = []\n");
    EXPECT_THAT(faults, HasSubstr("test.toml:2:"));
    EXPECT_THAT(faults, HasSubstr("test.toml:3:"));
}

TEST(Config, targets_are_checked) {
    EXPECT_THAT(fault_of("[[target]]\nname=\"a\"\nurl=\"http://10.0.0.1\"\n"),
                HasSubstr("target[0].tier"));
    EXPECT_THAT(fault_of("[[target]]\nname=\"a\"\ntier=\"T2\"\nurl=\"http://example.org\"\n"),
                HasSubstr("need https"));
    EXPECT_THAT(fault_of("[[target]]\nname=\"local\"\ntier=\"T1\"\nurl=\"http://10.0.0.1\"\n"),
                HasSubstr("declared twice"));
    EXPECT_THAT(fault_of("[[target]]\nname=\"a\"\ntier=\"T1\"\nurl=\"http://k:s@10.0.0.1\"\n"),
                HasSubstr("target[0].url"));
    EXPECT_THAT(fault_of("[aliases]\nx = \"nowhere\"\n"), HasSubstr("neither auto nor a target"));
}

TEST(Config, prices_are_per_million_tokens) {
    const auto config = parse_config(
        "[[target]]\nname=\"a\"\ntier=\"T1\"\nurl=\"http://[fd00::1]:8000/v1/\"\nprice_input=2\n",
        "test.toml");
    ASSERT_TRUE(config) << config.error().message();
    EXPECT_EQ(config->targets[0]->prices.per_input_token.nano, 2000);
    EXPECT_EQ(config->targets[0]->endpoint.host, "fd00::1");
    EXPECT_EQ(config->targets[0]->endpoint.path, "/v1");
}

TEST(Config, italian_messages_exist) {
    const auto config = parse_config("[gateway]\nprot = 1\n", "test.toml");
    ASSERT_FALSE(config);
    EXPECT_EQ(config.error().message_italian(),
              "test.toml:2: gateway.prot: opzione sconosciuta; forse `port`?");
}

TEST(EditDistance, counts_swaps_as_one) {
    EXPECT_EQ(edit_distance("prot", "port"), 1U);
    EXPECT_EQ(edit_distance("", "abc"), 3U);
    EXPECT_EQ(edit_distance("same", "same"), 0U);
}

constexpr std::string_view office =
    "[[target]]\nname = \"office\"\ntier = \"T1\"\nurl = \"http://10.0.0.2:80/v1\"\n";

TEST(Config, specialists_are_declared_for_targets_and_the_engine) {
    const auto config = parse_config(fmt::format("{}{}", office, R"(
[[specialist]]
target = "local"
adapter = "law"
domain = "humanities"
quality = 0.8
confidence_min = 0.6
prompt_tokens_max = 500
prompts = ["a", "b", "c", "d", "e"]
share_min = 0.7
[[specialist]]
target = "office"
domain = "medicine"
)"),
                                     "test.toml");
    ASSERT_TRUE(config) << config.error().message();
    ASSERT_EQ(config->engine.target.specialists.size(), 1U);
    const domain::Specialist& law = config->engine.target.specialists[0];
    EXPECT_EQ(law.adapter, "law");
    EXPECT_EQ(law.field, domain::Field::humanities);
    EXPECT_EQ(law.confidence_min, 0.6);
    EXPECT_EQ(law.prompt_tokens_max, 500U);
    ASSERT_EQ(config->specialists.size(), 1U);
    EXPECT_EQ(config->specialists[0].share_min, 0.7);
    ASSERT_EQ(config->targets[0]->specialists.size(), 1U);
    EXPECT_EQ(config->targets[0]->specialists[0].field, domain::Field::medicine);
}

TEST(Config, faults_of_specialists_name_their_option) {
    const auto fault = [](std::string_view rest) {
        return fault_of(fmt::format("{}[[specialist]]\n{}", office, rest));
    };
    EXPECT_THAT(fault("target = \"nobody\"\ndomain = \"medicine\""), HasSubstr("nobody"));
    EXPECT_THAT(fault("target = \"office\""), HasSubstr("domain"));
    EXPECT_THAT(fault("target = \"office\"\ndomain = \"alchemy\""), HasSubstr("one of"));
    EXPECT_THAT(fault("target = \"local\"\nadapter = \"law\"\ndomain = \"medicine\"\n"
                      "prompts = [\"one\"]"),
                HasSubstr("five"));
    // Nobody can be asked how sure it is who tells no log-probabilities.
    EXPECT_THAT(fault("target = \"office\"\ndomain = \"medicine\"\nconfidence_min = 0.5"),
                HasSubstr("logprobs"));
    EXPECT_THAT(fault_of(fmt::format("{}confidence_min = 0.5", office)), HasSubstr("logprobs"));
    EXPECT_EQ(fault_of(fmt::format(
                  "{}confidence_min = 0.5\ncapabilities = [\"chat\", \"logprobs\"]", office)),
              "no fault");
}

TEST(Config, confidence_is_measured_as_declared) {
    const auto fault = [](std::string_view rest) {
        return fault_of(fmt::format("{}confidence_min = 0.5\n{}", office, rest));
    };
    // What is measured otherwise needs no log-probabilities.
    EXPECT_EQ(fault("confidence_from = \"stated\""), "no fault");
    EXPECT_EQ(fault("confidence_from = \"verifier\"\nverifier = \"local\""), "no fault");
    EXPECT_EQ(fault("confidence_from = \"verifier\"\nverifier = \"local/judge\""), "no fault");
    EXPECT_THAT(fault("confidence_from = \"verifier\"\nverifier = \"nobody\""),
                HasSubstr("no target is called \"nobody\""));
    EXPECT_THAT(fault("confidence_from = \"verifier\""), HasSubstr("which target"));
    EXPECT_THAT(fault("confidence_from = \"stated\"\nverifier = \"local\""),
                HasSubstr("confidence_from"));
    EXPECT_THAT(fault("confidence_from = \"stars\""), HasSubstr("one of"));
    EXPECT_THAT(fault("confidence_from = \"samples\"\nconfidence_samples = 1"),
                HasSubstr("confidence_samples"));
    const auto config = parse_config(
        "[engine]\nconfidence_min = 0.5\nconfidence_from = \"samples\"\nconfidence_samples = 5\n"
        "[routing]\nmixture_max = 0\nhedge = true\nhedge_after_ms = 700\n",
        "test.toml");
    ASSERT_TRUE(config) << config.error().message();
    EXPECT_EQ(config->engine.target.measure.source, domain::ConfidenceSource::samples);
    EXPECT_EQ(config->engine.target.measure.samples, 5U);
    EXPECT_EQ(config->routing.mixture_max, 0U);
    EXPECT_EQ(config->routing.hedge_after, std::chrono::milliseconds(700));
    EXPECT_FALSE(config->routing.hedge_paid);
}

}  // namespace
}  // namespace molly::app
