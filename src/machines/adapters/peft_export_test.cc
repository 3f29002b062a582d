#include "adapters/peft_export.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "adapters/internal/lora_file.h"
#include "adapters/internal/peft.h"
#include "adapters/internal/safetensors.h"
#include "adapters/internal/test_lora.h"
#include "base/json.h"

namespace molly::adapters {
namespace {

namespace fs = std::filesystem;
using testing::TestFolder;
using testing::TestLora;

const models::Gguf& base() {
    static const models::Gguf read = *models::read_gguf(testing::test_model());
    return read;
}

/// An adapter of some of the base's weights, with ranks of their own.
TestLora adapter(const std::map<std::string, std::uint64_t>& ranks) {
    TestLora lora;
    float first = 0;
    for (const models::GgufTensor& weight : base().tensors) {
        const auto rank = ranks.find(weight.name);
        if (rank == ranks.end()) continue;
        lora.add(weight.name, weight.shape[0], weight.shape[1], rank->second, first += 1);
    }
    return lora;
}

/// The bytes of every factor by its name.
std::map<std::string, std::string> numbers_of(const fs::path& file) {
    const std::string bytes = testing::bytes_of(file);
    const auto lora = read_lora(file);
    EXPECT_TRUE(lora) << lora.error().message();
    std::map<std::string, std::string> out;
    for (const LoraPair& pair : lora->pairs) {
        for (const models::GgufTensor* tensor : {&pair.a, &pair.b})
            out[tensor->name] = bytes.substr(lora->data_offset + tensor->offset, tensor->bytes);
    }
    return out;
}

json::value config_of(const fs::path& folder) {
    auto read = parse_json(testing::bytes_of(folder / "adapter_config.json"));
    EXPECT_TRUE(read);
    return *std::move(read);
}

TEST(PeftExport, comes_back_as_it_went) {
    const TestFolder folder;
    const auto file = testing::lora_file(folder, "a.gguf",
                                         adapter({{"blk.0.attn_q.weight", 4},
                                                  {"blk.0.attn_k.weight", 4},
                                                  {"blk.1.attn_v.weight", 4},
                                                  {"blk.0.attn_output.weight", 4},
                                                  {"blk.1.ffn_gate.weight", 4},
                                                  {"blk.1.ffn_up.weight", 4},
                                                  {"blk.0.ffn_down.weight", 4}}));
    const auto written = write_peft(file, base(), "molly-test", folder.path() / "peft");
    ASSERT_TRUE(written) << written.error().message();
    const auto again = folder.path() / "again.gguf";
    const auto converted = convert_peft(folder.path() / "peft", base(), again);
    ASSERT_TRUE(converted) << converted.error().message();
    EXPECT_EQ(numbers_of(again), numbers_of(file));
    EXPECT_EQ(read_lora(again)->alpha, 8);
}

TEST(PeftExport, writes_names_shapes_and_the_checkpoints_row_order) {
    const TestFolder folder;
    const auto file = testing::lora_file(folder, "a.gguf", adapter({{"blk.0.attn_q.weight", 1}}));
    ASSERT_TRUE(write_peft(file, base(), "molly-test", folder.path()));
    const auto tensors = read_safetensors(folder.path() / "adapter_model.safetensors");
    ASSERT_TRUE(tensors) << tensors.error().message();
    ASSERT_EQ(tensors->size(), 2U);
    const std::string name = "base_model.model.model.layers.0.self_attn.q_proj.lora_";
    const SafeTensor& a = tensors->at(name + "A.weight");
    const SafeTensor& b = tensors->at(name + "B.weight");
    EXPECT_EQ(a.type, "F32");
    EXPECT_EQ(a.shape, (std::vector<std::uint64_t>{1, 96}));
    EXPECT_EQ(b.shape, (std::vector<std::uint64_t>{96, 1}));
    EXPECT_EQ(a.begin % 8, 0U);
    // Row i of the file holds i: heads of 16 rows come out as 0, 2, 4, ..., 1, 3, 5, ...
    const std::string bytes = testing::bytes_of(folder.path() / "adapter_model.safetensors");
    for (const auto& [at, row] : {std::pair{0, 0}, {1, 2}, {7, 14}, {8, 1}, {15, 15}, {17, 18}}) {
        std::string expected;
        testing::append(expected, 1 + static_cast<float>(row) / 1000);
        EXPECT_EQ(bytes.substr(b.begin + static_cast<std::size_t>(at) * 4, 4), expected) << at;
    }
}

TEST(PeftExport, says_what_peft_needs_to_know) {
    const TestFolder folder;
    const auto file = testing::lora_file(
        folder, "a.gguf", adapter({{"blk.0.attn_q.weight", 4}, {"blk.1.ffn_down.weight", 2}}));
    ASSERT_TRUE(write_peft(file, base(), "molly-test", folder.path()));
    const json::value config = config_of(folder.path());
    EXPECT_EQ(config.at("peft_type").as_string(), "LORA");
    EXPECT_EQ(config.at("base_model_name_or_path").as_string(), "molly-test");
    EXPECT_EQ(config.at("r").to_number<int>(), 4);
    EXPECT_EQ(config.at("lora_alpha").to_number<int>(), 8);
    EXPECT_EQ(molly::to_text(config.at("target_modules")), R"(["down_proj","q_proj"])");
    EXPECT_EQ(molly::to_text(config.at("rank_pattern")), R"({"layers.1.mlp.down_proj":2})");
    EXPECT_EQ(molly::to_text(config.at("alpha_pattern")), "{}");
}

TEST(PeftExport, without_an_alpha_the_scale_stays_one) {
    const TestFolder folder;
    TestLora lora = adapter({{"blk.0.attn_q.weight", 4}, {"blk.1.ffn_down.weight", 2}});
    lora.alpha = 0;
    const auto file = testing::lora_file(folder, "a.gguf", lora);
    ASSERT_TRUE(write_peft(file, base(), "molly-test", folder.path()));
    const json::value config = config_of(folder.path());
    EXPECT_EQ(config.at("lora_alpha").to_number<int>(), 4);
    EXPECT_EQ(molly::to_text(config.at("alpha_pattern")), R"({"layers.1.mlp.down_proj":2})");
}

TEST(PeftExport, what_peft_cannot_name_is_refused) {
    const TestFolder folder;
    TestLora lora = adapter({{"blk.0.attn_q.weight", 4}});
    lora.architecture = "mamba";
    const auto other =
        write_peft(testing::lora_file(folder, "a.gguf", lora), base(), "x", folder.path() / "peft");
    ASSERT_FALSE(other);
    EXPECT_EQ(other.error().code(), ErrorCode::unsupported);
    const auto odd = write_peft(
        testing::lora_file(folder, "b.gguf", TestLora::on("blk.0.ssm_in.weight", 96, 96)), base(),
        "x", folder.path() / "peft");
    ASSERT_FALSE(odd);
    EXPECT_THAT(odd.error().message(), ::testing::HasSubstr("ssm_in"));
}

TEST(PeftExport, a_version_of_the_registry_goes_into_its_own_folder) {
    const TestFolder folder;
    auto registry = Registry::open(folder.path());
    ASSERT_TRUE(registry);
    Manifest manifest;
    manifest.name = "law";
    manifest.version = "1.2.0";
    const auto file = testing::lora_file(folder, "a.gguf", adapter({{"blk.0.attn_k.weight", 4}}));
    ASSERT_TRUE(
        (*registry)->import(file, manifest, {.base = testing::test_model(), .progress = {}}));
    const auto place =
        export_peft(**registry, folder.path(), "law", testing::test_model(), folder.path() / "out");
    ASSERT_TRUE(place) << place.error().message();
    EXPECT_EQ(place->filename(), "law-1.2.0");
    EXPECT_TRUE(fs::exists(*place / "adapter_model.safetensors"));
    EXPECT_EQ(export_peft(**registry, folder.path(), "none", {}, folder.path()).error().code(),
              ErrorCode::not_found);
}

}  // namespace
}  // namespace molly::adapters
