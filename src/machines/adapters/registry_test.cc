#include "adapters/registry.h"

#include <chrono>
#include <limits>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "adapters/internal/test_lora.h"

namespace molly::adapters {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::lora_file;
using ::testing::Not;
using testing::TestFolder;
using testing::TestLora;
using testing::write_file;

constexpr std::string_view query = "blk.0.attn_q.weight";

class RegistryTest : public ::testing::Test {
protected:
    RegistryTest() : registry_(*Registry::open(folder_.path())) {}

    Result<Manifest> import(const std::string& name, const std::string& version,
                            const TestLora& lora, bool promote = true) {
        Manifest manifest;
        manifest.name = name;
        manifest.version = version;
        return registry_->import(
            lora_file(folder_, "given.gguf", lora), manifest,
            {.base = testing::test_model(), .promote = promote, .progress = {}});
    }
    Result<Manifest> import(const std::string& name, const std::string& version, float first = 0,
                            bool promote = true) {
        return import(name, version, TestLora::on(query, 96, 96, 4, first), promote);
    }
    std::string refused(const TestLora& lora, ErrorCode code) {
        const auto manifest = import("bad", "1.0.0", lora);
        if (manifest) return "it was taken";
        EXPECT_EQ(manifest.error().code(), code) << manifest.error().message();
        return manifest.error().message();
    }

    TestFolder folder_;
    std::unique_ptr<Registry> registry_;
};

TEST_F(RegistryTest, FillsTheManifestAndFindsIt) {
    TestLora lora = TestLora::on(query, 96, 96, 4);
    lora.add("blk.1.ffn_down.weight", 128, 96, 16);
    const auto manifest = import("law", "1.0.0", lora);
    ASSERT_TRUE(manifest.has_value()) << manifest.error().message();
    EXPECT_EQ(manifest->rank, 16U);
    EXPECT_EQ(manifest->alpha, 8);
    EXPECT_EQ(manifest->tensors, 2U);
    EXPECT_THAT(manifest->modules, ElementsAre("attn_q", "ffn_down"));
    EXPECT_EQ(manifest->hash.size(), 64U);
    EXPECT_EQ(manifest->base.hash, seal::to_hex(*seal::sha256_file(testing::test_model())));
    EXPECT_EQ(manifest->base.tokenizer_hash.size(), 64U);
    EXPECT_EQ(manifest->base.architecture, "llama");
    for (const char* id : {"law", "law@1.0.0"}) {
        const auto found = registry_->find(id, manifest->base.hash);
        ASSERT_TRUE(found.has_value()) << found.error().message();
        EXPECT_EQ(*found, *manifest);
    }
    EXPECT_TRUE(fs::exists(registry_->file_of(*manifest)));
    EXPECT_TRUE(registry_->verify("law").has_value());
}

TEST_F(RegistryTest, TellsWhatThereIsWhenANameIsUnknown) {
    ASSERT_TRUE(import("law", "1.0.0"));
    ASSERT_TRUE(import("tax", "1.0.0"));
    for (const char* id : {"lew", "../law", "", "law@2.0.0"}) {
        const auto found = registry_->find(id);
        ASSERT_FALSE(found.has_value()) << id;
        EXPECT_EQ(found.error().code(), ErrorCode::not_found);
        EXPECT_THAT(found.error().message(), HasSubstr("law"));
    }
}

// Case 15: a mismatch is refused and named.
TEST_F(RegistryTest, NamesTheFirstTensorThatDoesNotFit) {
    EXPECT_THAT(refused(TestLora::on("model.layers.0.q_proj", 96, 96), ErrorCode::conflict),
                HasSubstr("tensor model.layers.0.q_proj.lora_a"));
    EXPECT_THAT(refused(TestLora::on(query, 64, 96), ErrorCode::conflict),
                HasSubstr("blk.0.attn_q.weight.lora_a: its shape is 64 x 4 against"));
    EXPECT_THAT(refused(TestLora::on(query, 96, 64), ErrorCode::conflict),
                HasSubstr("blk.0.attn_q.weight.lora_b: its shape is 4 x 64 against"));
    TestLora other = TestLora::on(query, 96, 96);
    other.architecture = "qwen2";
    EXPECT_THAT(refused(other, ErrorCode::conflict), HasSubstr("architecture qwen2"));
    EXPECT_THAT(refused(TestLora::on(query, 96, 96, 257), ErrorCode::unsupported),
                HasSubstr("rank 257"));
}

TEST_F(RegistryTest, RefusesDamagedFactors) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    EXPECT_THAT(refused(TestLora::on(query, 96, 96, 4, nan), ErrorCode::corrupt),
                HasSubstr("blk.0.attn_q.weight.lora_a: it holds a number that is not finite"));
    EXPECT_THAT(refused(TestLora::on(query, 96, 96, 4, 1e6F), ErrorCode::corrupt),
                HasSubstr("too large for half precision"));
    TestLora lone = TestLora::on(query, 96, 96);
    lone.tensors.pop_back();
    EXPECT_THAT(refused(lone, ErrorCode::corrupt), HasSubstr("its lora_b is missing"));
    TestLora uneven = TestLora::on(query, 96, 96);
    uneven.tensors[1].shape[0] = 8;
    EXPECT_THAT(refused(uneven, ErrorCode::corrupt), HasSubstr("rank 4 and lora_b 8"));
    TestLora model = TestLora::on(query, 96, 96);
    model.type = "model";
    EXPECT_THAT(refused(model, ErrorCode::invalid_request), HasSubstr("no LoRA adapter"));
    EXPECT_THAT(refused(TestLora(), ErrorCode::corrupt), HasSubstr("changes nothing"));
}

TEST_F(RegistryTest, RefusesAFileThatEndsEarly) {
    const std::string whole = TestLora::on(query, 96, 96).bytes();
    Manifest manifest;
    manifest.name = "cut";
    manifest.version = "1.0.0";
    for (const std::size_t keep : {std::size_t{10}, whole.size() / 2, whole.size() - 1}) {
        write_file(folder_.path() / "cut.gguf", whole.substr(0, keep));
        const auto taken = registry_->import(folder_.path() / "cut.gguf", manifest,
                                             {.base = testing::test_model(), .progress = {}});
        ASSERT_FALSE(taken.has_value()) << keep;
        EXPECT_EQ(taken.error().code(), ErrorCode::corrupt);
    }
    EXPECT_TRUE(registry_->list()->empty());
}

TEST_F(RegistryTest, PinsBaseAndTokenizer) {
    Manifest manifest;
    manifest.name = "law";
    manifest.version = "1.0.0";
    const fs::path file = lora_file(folder_, "x.gguf", TestLora::on(query, 96, 96));
    const ImportOptions options{.base = testing::test_model(), .progress = {}};
    manifest.base.hash = std::string(64, 'a');
    EXPECT_THAT(registry_->import(file, manifest, options).error().message(),
                HasSubstr("another base"));
    manifest.base.hash.clear();
    manifest.base.tokenizer_hash = std::string(64, 'b');
    EXPECT_THAT(registry_->import(file, manifest, options).error().message(),
                HasSubstr("another tokenizer"));
    ASSERT_TRUE(import("law", "1.0.0"));
    EXPECT_EQ(registry_->find("law", std::string(64, 'c')).error().code(), ErrorCode::conflict);
}

// Case 17: the same name with other bytes is another version, never a silent change.
TEST_F(RegistryTest, AVersionNeverChanges) {
    const auto first = import("law", "1.0.0", 0);
    ASSERT_TRUE(first);
    ASSERT_TRUE(import("law", "1.0.0", 0));  // the same bytes again
    const auto other = import("law", "1.0.0", 0.5F);
    ASSERT_FALSE(other.has_value());
    EXPECT_EQ(other.error().code(), ErrorCode::conflict);
    // The file that was given is overwritten by now; ours is not.
    EXPECT_TRUE(registry_->verify("law@1.0.0").has_value());
    const auto second = import("law", "1.1.0", 0.5F);
    ASSERT_TRUE(second);
    EXPECT_NE(second->hash, first->hash);
    EXPECT_EQ(registry_->find("law")->version, "1.1.0");
    EXPECT_EQ(registry_->find("law@1.0.0")->hash, first->hash);
}

TEST_F(RegistryTest, PromotesAndRollsBack) {
    ASSERT_TRUE(import("law", "1.0.0", 0));
    ASSERT_TRUE(import("law", "1.1.0", 1, false));
    EXPECT_EQ(registry_->find("law")->version, "1.0.0");
    ASSERT_TRUE(registry_->promote("law@1.1.0").has_value());
    EXPECT_EQ(registry_->find("law")->version, "1.1.0");
    const auto back = registry_->rollback("law");
    ASSERT_TRUE(back.has_value());
    EXPECT_EQ(back->version, "1.0.0");
    EXPECT_EQ(registry_->find("law")->version, "1.0.0");
    EXPECT_EQ(registry_->rollback("law").error().code(), ErrorCode::conflict);
    EXPECT_EQ(registry_->promote("law@9.0.0").error().code(), ErrorCode::not_found);
}

TEST_F(RegistryTest, AnotherProcessSeesAPromotion) {
    const auto reader = *Registry::open(folder_.path());
    ASSERT_TRUE(import("law", "1.0.0", 0));
    ASSERT_TRUE(import("law", "1.1.0", 1, false));
    EXPECT_EQ(reader->find("law")->version, "1.0.0");
    std::this_thread::sleep_for(std::chrono::milliseconds(150));  // long enough to be remembered
    EXPECT_EQ(reader->find("law")->version, "1.0.0");
    ASSERT_TRUE(registry_->promote("law@1.1.0"));
    EXPECT_EQ(reader->find("law")->version, "1.1.0");
}

TEST_F(RegistryTest, EveryChangeRaisesTheVersionForOtherProcessesToo) {
    const auto reader = *Registry::open(folder_.path());
    std::uint64_t before = reader->version();
    const auto grew = [&] {
        const std::uint64_t now = reader->version();
        return std::exchange(before, now) < now;
    };
    ASSERT_TRUE(import("law", "1.0.0", 0));
    EXPECT_TRUE(grew());
    ASSERT_TRUE(import("law", "1.1.0", 1));
    EXPECT_TRUE(grew());
    ASSERT_TRUE(registry_->rollback("law"));
    EXPECT_TRUE(grew());
    ASSERT_TRUE(registry_->promote("law@1.1.0"));
    EXPECT_TRUE(grew());
    ASSERT_TRUE(registry_->remove("law"));
    EXPECT_TRUE(grew());
    EXPECT_FALSE(reader->find("law"));
    EXPECT_FALSE(grew());
}

TEST_F(RegistryTest, VerifyFindsEveryChange) {
    const auto manifest = import("law", "1.0.0");
    ASSERT_TRUE(manifest);
    const fs::path file = registry_->file_of(*manifest);
    std::string bytes = testing::bytes_of(file);
    bytes[bytes.size() - 40] ^= 1;
    fs::permissions(file, fs::perms::owner_all);
    write_file(file, bytes);
    EXPECT_THAT(registry_->verify("law").error().message(), HasSubstr("weights of law@1.0.0"));
    Manifest forged = *manifest;
    forged.domain = "medicine";
    write_file(folder_.path() / "adapters/names/law/1.0.0.json", to_text(forged));
    const auto reader = *Registry::open(folder_.path());
    EXPECT_THAT(reader->verify("law").error().message(), HasSubstr("not the one that was signed"));
    EXPECT_EQ(registry_->verify("law", "somebody").error().code(), ErrorCode::corrupt);
}

TEST_F(RegistryTest, TrustsOnlyTheKeyThatIsNamed) {
    ASSERT_TRUE(import("law", "1.0.0"));
    const auto denied = registry_->verify("law", seal::to_base64(std::string(32, 'k')));
    EXPECT_EQ(denied.error().code(), ErrorCode::denied);
}

TEST_F(RegistryTest, RemovesAVersionAndItsWeights) {
    const auto first = import("law", "1.0.0", 0);
    const auto same = import("tax", "1.0.0", 0);
    ASSERT_TRUE(first && same);
    ASSERT_TRUE(import("law", "1.1.0", 1));
    EXPECT_EQ(registry_->remove("law@1.1.0").error().code(), ErrorCode::conflict);
    ASSERT_TRUE(registry_->remove("law@1.0.0"));
    EXPECT_TRUE(fs::exists(registry_->file_of(*first)));  // tax has the same bytes
    ASSERT_TRUE(registry_->remove("tax"));
    EXPECT_FALSE(fs::exists(registry_->file_of(*first)));
    EXPECT_EQ(registry_->find("tax").error().code(), ErrorCode::not_found);
    EXPECT_EQ(registry_->find("law")->version, "1.1.0");
}

TEST_F(RegistryTest, PinsAndWritesOut) {
    const auto manifest = import("law", "1.0.0");
    ASSERT_TRUE(manifest);
    EXPECT_FALSE(registry_->pinned(*manifest));
    ASSERT_TRUE(registry_->pin("law", true));
    EXPECT_TRUE(registry_->pinned(*manifest));
    EXPECT_TRUE(registry_->list()->front().pinned);
    ASSERT_TRUE(registry_->pin("law@1.0.0", false));
    EXPECT_FALSE(registry_->pinned(*manifest));
    const auto file = registry_->write_out("law", folder_.path() / "out");
    ASSERT_TRUE(file.has_value()) << file.error().message();
    EXPECT_EQ(seal::to_hex(*seal::sha256_file(*file)), manifest->hash);
    EXPECT_EQ(*manifest_from(testing::bytes_of(folder_.path() / "out/law-1.0.0.json")), *manifest);
}

// However many there are: opening reads none of them, finding one reads one. (Ten thousand are
// measured by the benchmark `adapters`.)
TEST_F(RegistryTest, ManyCostNothingAtStart) {
    const auto manifest = import("law", "1.0.0");
    ASSERT_TRUE(manifest);
    Manifest copy = *manifest;
    for (int i = 0; i < 500; ++i) {
        copy.name = "a" + std::to_string(i);
        const fs::path folder = folder_.path() / "adapters/names" / copy.name;
        fs::create_directory(folder);
        write_file(folder / "1.0.0.json", to_text(copy));
        write_file(folder / "history", "1.0.0\n");
    }
    const auto started = std::chrono::steady_clock::now();
    const auto registry = *Registry::open(folder_.path());
    ASSERT_TRUE(registry->find("a377", copy.base.hash).has_value());
    const auto took = std::chrono::steady_clock::now() - started;
    EXPECT_LT(took, std::chrono::milliseconds(50));
    EXPECT_EQ(registry->names_for(copy.base.hash, 100).size(), 100U);
    EXPECT_EQ(registry->list()->size(), 501U);
}

// The row order of llama.cpp's converter, on two heads of four rows.
TEST_F(RegistryTest, TakesAPeftFolder) {
    const fs::path peft = folder_.path() / "peft";
    fs::create_directory(peft);
    write_file(peft / "adapter_config.json",
               R"({"peft_type":"LORA","r":2,"lora_alpha":4,"target_modules":["q_proj"]})");
    std::string rows;  // B: row i holds the number i
    for (int row = 0; row < 96; ++row)
        for (int column = 0; column < 2; ++column)
            testing::append(rows, static_cast<float>(row));
    const std::string a(96 * 2 * 4, '\0');
    const std::string header =
        R"({"base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight":)"
        R"({"dtype":"F32","shape":[2,96],"data_offsets":[0,768]},)"
        R"("base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight":)"
        R"({"dtype":"F32","shape":[96,2],"data_offsets":[768,1536]}})";
    std::string file;
    testing::append<std::uint64_t>(file, header.size());
    write_file(peft / "adapter_model.safetensors", file + header + a + rows);
    Manifest manifest;
    manifest.name = "peft";
    manifest.version = "1.0.0";
    const auto taken =
        registry_->import(peft, manifest, {.base = testing::test_model(), .progress = {}});
    ASSERT_TRUE(taken.has_value()) << taken.error().message();
    EXPECT_EQ(taken->rank, 2U);
    EXPECT_EQ(taken->alpha, 4);
    EXPECT_EQ(taken->training.method, "peft");
    const std::string gguf = testing::bytes_of(registry_->file_of(*taken));
    const std::string b = gguf.substr(gguf.size() - rows.size());
    // Heads of 16 rows: 0, 8, 1, 9, ...
    for (const auto& [at, row] : {std::pair{0, 0}, {1, 8}, {2, 1}, {15, 15}, {16, 16}, {17, 24}}) {
        std::string expected;
        testing::append(expected, static_cast<float>(row));
        EXPECT_EQ(b.substr(static_cast<std::size_t>(at) * 8, 4), expected) << at;
    }
    EXPECT_EQ(fs::directory_iterator(folder_.path() / "adapters/weights")->path().extension(),
              ".gguf");
}

TEST_F(RegistryTest, RefusesAPeftFolderThatItCannotKeep) {
    const fs::path peft = folder_.path() / "peft";
    fs::create_directory(peft);
    Manifest manifest;
    manifest.name = "peft";
    manifest.version = "1.0.0";
    const ImportOptions options{.base = testing::test_model(), .progress = {}};
    EXPECT_EQ(registry_->import(peft, manifest, options).error().code(), ErrorCode::corrupt);
    write_file(peft / "adapter_config.json", R"({"r":2,"lora_alpha":4,"use_dora":true})");
    EXPECT_THAT(registry_->import(peft, manifest, options).error().message(), HasSubstr("DoRA"));
}

}  // namespace
}  // namespace molly::adapters
