#include "models/catalogue.h"

#include <fstream>

#include <gtest/gtest.h>

#include "models/internal/test_folder.h"

namespace molly::models {
namespace {

namespace fs = std::filesystem;
using testing::bytes_of;
using testing::test_model;
using testing::TestFolder;

class CatalogueTest : public ::testing::Test {
protected:
    Catalogue open() { return Catalogue::open(folder_.path()).value(); }
    TestFolder folder_;
};

TEST_F(CatalogueTest, AnImportedModelIsDescribedAndFoundAgain) {
    Catalogue catalogue = open();
    std::uint64_t last = 0;
    const auto made = catalogue.import(test_model(), "tiny",
                                       [&](std::uint64_t done, std::uint64_t) { last = done; });
    ASSERT_TRUE(made.has_value()) << made.error().message();
    EXPECT_EQ(last, fs::file_size(test_model()));
    EXPECT_EQ(made->hash.size(), 64U);
    EXPECT_EQ(made->source, "import");
    EXPECT_EQ(made->bytes, fs::file_size(test_model()));
    EXPECT_FALSE(made->architecture.empty());
    EXPECT_FALSE(made->quantization.empty());
    EXPECT_GT(made->parameters, 0U);
    EXPECT_GT(made->context_tokens, 0U);
    EXPECT_EQ(bytes_of(made->file), bytes_of(test_model()));
    const Catalogue again = open();
    ASSERT_EQ(again.list().size(), 1U);
    const auto found = again.find("tiny");
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->hash, made->hash);
    EXPECT_EQ(found->file, made->file);
    EXPECT_EQ(found->parameters, made->parameters);
    EXPECT_EQ(found->chat_template, made->chat_template);
    const auto missing = again.find("huge");
    EXPECT_EQ(missing.error().code(), ErrorCode::not_found);
    EXPECT_NE(missing.error().message().find("tiny"), std::string::npos);
}

TEST_F(CatalogueTest, TheNameComesFromTheFileAndIsPlain) {
    EXPECT_EQ(model_name_of("hf:owner/repo/sub/a-b.Q4_0.gguf"), "a-b.Q4_0");
    EXPECT_EQ(model_name_of("https://h/x/y.gguf?download=true#top"), "y");
    EXPECT_EQ(model_name_of("/tmp/z.gguf"), "z");
    Catalogue catalogue = open();
    EXPECT_EQ(catalogue.import(test_model(), "", {})->name, "molly-test");
    for (const char* name : {"../x", "a/b", ".x", "a b", "\xC3\xA8"}) {
        EXPECT_EQ(catalogue.import(test_model(), name, {}).error().code(),
                  ErrorCode::invalid_request)
            << name;
    }
}

TEST_F(CatalogueTest, ATakenNameIsAConflictAndTheSameBytesAreNot) {
    Catalogue catalogue = open();
    ASSERT_TRUE(catalogue.import(test_model(), "tiny", {}).has_value());
    EXPECT_TRUE(catalogue.import(test_model(), "tiny", {}).has_value());
    const fs::path other = folder_.path() / "other.gguf";
    std::string bytes = bytes_of(test_model());
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    std::ofstream(other, std::ios::binary) << bytes;
    EXPECT_EQ(catalogue.import(other, "tiny", {}).error().code(), ErrorCode::conflict);
    EXPECT_TRUE(catalogue.import(other, "other", {}).has_value());
    EXPECT_EQ(open().list().size(), 2U);
}

TEST_F(CatalogueTest, TwoOpenCataloguesDoNotUndoEachOther) {
    Catalogue one = open();
    Catalogue two = open();
    ASSERT_TRUE(one.import(test_model(), "a", {}).has_value());
    ASSERT_TRUE(two.import(test_model(), "b", {}).has_value());
    EXPECT_EQ(open().list().size(), 2U);
    ASSERT_TRUE(one.reload().has_value());
    EXPECT_EQ(one.list().size(), 2U);
}

TEST_F(CatalogueTest, ASymbolicLinkIsFollowed) {
    const fs::path link = folder_.path() / "link.gguf";
    fs::create_symlink(test_model(), link);
    Catalogue catalogue = open();
    const auto made = catalogue.import(link, "", {});
    ASSERT_TRUE(made.has_value());
    EXPECT_FALSE(fs::is_symlink(made->file));
    fs::remove(link);
    EXPECT_EQ(bytes_of(made->file), bytes_of(test_model()));
}

TEST_F(CatalogueTest, WhatIsNoModelStaysOut) {
    Catalogue catalogue = open();
    EXPECT_EQ(catalogue.import(folder_.path() / "absent.gguf", "", {}).error().code(),
              ErrorCode::not_found);
    const fs::path cut = folder_.path() / "cut.gguf";
    std::ofstream(cut, std::ios::binary) << bytes_of(test_model()).substr(0, 5000);
    EXPECT_EQ(catalogue.import(cut, "", {}).error().code(), ErrorCode::corrupt);
    std::ofstream(cut, std::ios::binary | std::ios::trunc) << "<html>no</html>";
    EXPECT_EQ(catalogue.import(cut, "", {}).error().code(), ErrorCode::corrupt);
    EXPECT_TRUE(catalogue.list().empty());
    EXPECT_FALSE(fs::exists(folder_.path() / "models" / "cut.gguf"));
}

TEST_F(CatalogueTest, ARemovedModelIsGone) {
    Catalogue catalogue = open();
    const auto made = catalogue.import(test_model(), "tiny", {});
    ASSERT_TRUE(catalogue.remove("tiny").has_value());
    EXPECT_FALSE(fs::exists(made->file));
    EXPECT_TRUE(fs::exists(test_model()));
    EXPECT_EQ(catalogue.remove("tiny").error().code(), ErrorCode::not_found);
    EXPECT_TRUE(open().list().empty());
}

TEST_F(CatalogueTest, ADamagedOrNewerCatalogueSaysSo) {
    fs::create_directories(folder_.path() / "models");
    const auto write = [&](const char* text) {
        std::ofstream(folder_.path() / "models" / "catalogue.json", std::ios::trunc) << text;
        return Catalogue::open(folder_.path()).error().code();
    };
    EXPECT_EQ(write("{"), ErrorCode::corrupt);
    EXPECT_EQ(write(R"({"version":1,"models":[{"name":"../../etc/x"}]})"), ErrorCode::corrupt);
    EXPECT_EQ(write(R"({"version":2,"models":[]})"), ErrorCode::unsupported);
}

}  // namespace
}  // namespace molly::models
