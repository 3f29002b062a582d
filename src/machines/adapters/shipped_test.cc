#include "adapters/shipped.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "adapters/internal/test_lora.h"

namespace molly::adapters {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::lora_file;
using ::testing::SizeIs;
using testing::TestFolder;
using testing::TestLora;

/// A publisher's registry, the folder that it ships, and the registry of who gets it.
class ShippedTest : public ::testing::Test {
protected:
    ShippedTest() { ship("law", 0); }

    void ship(const std::string& name, float first) {
        const auto publisher = Registry::open(publisher_.path());
        Manifest manifest;
        manifest.name = name;
        manifest.version = "1.0.0";
        const auto made =
            (*publisher)
                ->import(
                    lora_file(publisher_, "given.gguf", TestLora::on(weight_, 96, 96, 4, first)),
                    manifest, {.base = testing::test_model(), .promote = true, .progress = {}});
        ASSERT_TRUE(made) << made.error().message();
        key_ = made->signature.public_key;
        base_hash_ = made->base.hash;
        ASSERT_TRUE((*publisher)->write_out(name, shipped_.path()));
    }
    Result<Shipped> take(const std::string& base_hash, const std::string& key) {
        return take_in_shipped(*registry_, data_.path(), shipped_.path(), testing::test_model(),
                               base_hash, key);
    }
    Result<Shipped> take() { return take(base_hash_, key_); }

    TestFolder publisher_, shipped_, data_;
    std::unique_ptr<Registry> registry_ = *Registry::open(data_.path());
    const std::string weight_ = "blk.0.attn_q.weight";
    std::string key_, base_hash_;
};

TEST_F(ShippedTest, EachIsTakenOnceAndServes) {
    const auto first = take();
    ASSERT_TRUE(first) << first.error().message();
    ASSERT_THAT(first->taken, SizeIs(1));
    EXPECT_THAT(first->refused, SizeIs(0));
    EXPECT_TRUE(registry_->find("law", base_hash_));
    EXPECT_TRUE(registry_->verify("law"));
    ship("triage", 1);
    const auto second = take();
    ASSERT_TRUE(second);
    ASSERT_THAT(second->taken, SizeIs(1));
    EXPECT_EQ(second->taken.front().name, "triage");
}

TEST_F(ShippedTest, WhatTheOwnerRemovedDoesNotComeBack) {
    ASSERT_TRUE(take());
    ASSERT_TRUE(registry_->remove("law"));
    const auto again = take();
    ASSERT_TRUE(again);
    EXPECT_THAT(again->taken, SizeIs(0));
    EXPECT_FALSE(registry_->find("law"));
}

TEST_F(ShippedTest, ForeignSignaturesAndChangedManifestsAreRefused) {
    const auto foreign = take(base_hash_, "c29tZWJvZHkgZWxzZQ==");
    ASSERT_TRUE(foreign);
    ASSERT_THAT(foreign->refused, SizeIs(1));
    EXPECT_EQ(foreign->refused.front().code(), ErrorCode::denied);
    const fs::path file = shipped_.path() / "law-1.0.0.json";
    std::string text = testing::bytes_of(file);
    const std::size_t domain = text.find(R"("domain":")") + 10;
    text.insert(domain, 1, 'x');
    testing::write_file(file, text);
    const auto changed = take();
    ASSERT_TRUE(changed);
    ASSERT_THAT(changed->refused, SizeIs(1));
    EXPECT_EQ(changed->refused.front().code(), ErrorCode::corrupt);
    EXPECT_FALSE(registry_->find("law"));
}

TEST_F(ShippedTest, ChangedWeightsAreRefused) {
    const fs::path file = shipped_.path() / "law-1.0.0.gguf";
    std::string bytes = testing::bytes_of(file);
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    testing::write_file(file, bytes);
    const auto changed = take();
    ASSERT_TRUE(changed);
    ASSERT_THAT(changed->refused, SizeIs(1));
    EXPECT_THAT(changed->refused.front().message(), HasSubstr("SHA-256"));
}

TEST_F(ShippedTest, OtherBasesAndMissingFoldersBringNothing) {
    const auto other = take(std::string(64, '0'), key_);
    ASSERT_TRUE(other);
    EXPECT_THAT(other->taken, SizeIs(0));
    EXPECT_THAT(other->refused, SizeIs(0));
    fs::remove_all(shipped_.path());
    const auto none = take();
    ASSERT_TRUE(none);
    EXPECT_THAT(none->taken, SizeIs(0));
    fs::create_directory(shipped_.path());
}

}  // namespace
}  // namespace molly::adapters
