#include "adapters/manifest.h"

#include <gtest/gtest.h>

namespace molly::adapters {
namespace {

Manifest example() {
    Manifest manifest;
    manifest.name = "law";
    manifest.version = "1.2.0";
    manifest.domain = "law";
    manifest.base = {.name = "qwen",
                     .hash = std::string(64, 'a'),
                     .tokenizer_hash = std::string(64, 'b'),
                     .architecture = "qwen2",
                     .quantization = "q4_0"};
    manifest.rank = 16;
    manifest.alpha = 32;
    manifest.modules = {"attn_q", "ffn_down"};
    manifest.tensors = 48;
    manifest.hash = std::string(64, 'c');
    manifest.bytes = 1234;
    manifest.label.sensitivity = domain::Sensitivity::secret;
    manifest.label.residency = domain::Residency({"IT"});
    manifest.label.origins = {"anna"};
    manifest.training = {.method = "lora",
                         .tool = "molly 0.1.0",
                         .finished = "2026-11-30T20:00:00Z",
                         .examples_hash = std::string(64, 'd'),
                         .examples = 10,
                         .tokens = 200,
                         .steps = 30,
                         .seed = 7,
                         .details = {{"rate", "0.0002"}}};
    manifest.evaluation = {
        {.set = "held out", .metric = "loss", .base = 2.5, .adapter = 1.5, .examples = 4}};
    manifest.component = {.instructions = "Which domain?", .schema = R"({"type":"string"})"};
    manifest.signature = {.public_key = "abc", .value = "def"};
    return manifest;
}

TEST(Manifest, SurvivesItsText) {
    const Manifest written = example();
    const auto read = manifest_from(to_text(written));
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(*read, written);
}

TEST(Manifest, TheSignedTextHasNoSignature) {
    EXPECT_EQ(to_text(example(), false).find("signature"), std::string::npos);
}

TEST(Manifest, ALabelThatCannotBeReadIsTheHighest) {
    const auto read = manifest_from(R"({"format":1,"label":{"class":"harmless"}})");
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(read->label.sensitivity, domain::Sensitivity::secret);
}

TEST(Manifest, RefusesWhatIsNoneOrNewer) {
    EXPECT_EQ(manifest_from("[]").error().code(), ErrorCode::corrupt);
    EXPECT_EQ(manifest_from(R"({"format":2})").error().code(), ErrorCode::unsupported);
}

TEST(Versions, AreOrderedAsSemverSays) {
    const char* ordered[] = {"1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta",
                             "1.0.0-beta",  "1.0.0-beta.2",  "1.0.0-beta.11",
                             "1.0.0-rc.1",  "1.0.0",         "1.9.0",
                             "1.10.0",      "2.0.0"};
    for (std::size_t i = 0; i + 1 < std::size(ordered); ++i) {
        EXPECT_LT(compare_versions(ordered[i], ordered[i + 1]), 0) << ordered[i];
        EXPECT_GT(compare_versions(ordered[i + 1], ordered[i]), 0) << ordered[i];
    }
    EXPECT_EQ(compare_versions("1.0.0", "1.0.0"), 0);
}

TEST(Versions, AreChecked) {
    for (const char* good : {"0.0.1", "1.0.0", "10.20.30-rc.1"})
        EXPECT_TRUE(check_version(good).has_value()) << good;
    for (const char* bad : {"", "1", "1.0", "01.0.0", "1.0.0-", "1.0.0-a..b", "../../x", "1.0.0/x"})
        EXPECT_FALSE(check_version(bad).has_value()) << bad;
}

TEST(Ids, AreSplitAtTheAt) {
    EXPECT_EQ(split_id("law@1.0.0"), (std::pair<std::string, std::string>("law", "1.0.0")));
    EXPECT_EQ(split_id("law"), (std::pair<std::string, std::string>("law", "")));
}

}  // namespace
}  // namespace molly::adapters
