#include "app/prefix_files.h"

#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace molly::app {
namespace {

namespace fs = std::filesystem;
using domain::Sensitivity;

class HandClock final : public Clock {
public:
    WallTime time = WallTime(std::chrono::days(20'000));
    MonoTime now() const noexcept override { return {}; }
    WallTime wall() const noexcept override { return time; }
    Task<void> sleep_until(MonoTime /*when*/) override { co_return; }
};

/// Bytes that do not repeat, over two pieces and a half.
std::string state(char first = 0) {
    std::string bytes((2U << 20U) + 524'291, '\0');
    std::uint32_t last = static_cast<unsigned char>(first) + 1U;
    for (char& byte : bytes)
        byte = static_cast<char>((last = last * 1664525U + 1013904223U) >> 24U);
    return bytes;
}

engine::PrefixRecord record(Sensitivity sensitivity = Sensitivity::private_) {
    engine::PrefixRecord out;
    out.layout = "llama.cpp v9";
    out.key = "aa*0.5 | anna";
    out.adapters = "law@1.0.0";
    out.member = "anna";
    out.sensitivity = sensitivity;
    for (std::int32_t i = 0; i < 128; ++i)
        out.tokens.push_back(i * 7);
    return out;
}

class PrefixFilesTest : public testing::Test {
protected:
    void SetUp() override { fs::create_directory(folder_); }
    void TearDown() override { fs::remove_all(folder_); }

    seal::Vault vault(const char* key = "vault.key") const {
        return *seal::Vault::load_or_create(folder_ / key);
    }
    std::shared_ptr<PrefixFiles> open(std::uint64_t bytes_max = 1U << 30U,
                                      std::string model_hash = "m1",
                                      const char* key = "vault.key") {
        PrefixFiles::Options options{.folder = folder_ / "prefixes",
                                     .bytes_max = bytes_max,
                                     .retention = {},
                                     .model = "nano",
                                     .model_hash = std::move(model_hash)};
        options.retention[3] = {.responses = false, .responses_for = std::chrono::days(0)};
        auto files = PrefixFiles::open(std::move(options), vault(key), clock_);
        EXPECT_TRUE(files) << files.error().message();
        return *std::move(files);
    }
    /// Keeps one and gives its file.
    fs::path keep(PrefixFiles& files, const std::string& bytes = state()) {
        const auto id = files.save(record(), bytes);
        EXPECT_TRUE(id) << id.error().message();
        return prefix_path(folder_ / "prefixes", *id);
    }
    static std::string bytes_of(const fs::path& file) {
        std::ifstream in(file, std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }
    static void write(const fs::path& file, std::string_view bytes) {
        std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
    }

    const fs::path folder_ =
        fs::temp_directory_path() / fmt::format("molly-prefixes-{}", seal::random_token(12));
    HandClock clock_;
};

TEST_F(PrefixFilesTest, GivesBackWhatItGotAlsoInAnotherProcess) {
    std::string id;
    {
        const auto files = open();
        id = keep(*files).stem().string();
    }
    const auto files = open();
    const auto records = files->list();
    ASSERT_EQ(records.size(), 1U);
    const engine::PrefixRecord wanted = record();
    EXPECT_EQ(records[0].id, id);
    EXPECT_EQ(records[0].layout, wanted.layout);
    EXPECT_EQ(records[0].key, wanted.key);
    EXPECT_EQ(records[0].tokens, wanted.tokens);
    EXPECT_EQ(records[0].adapters, wanted.adapters);
    EXPECT_EQ(records[0].member, wanted.member);
    EXPECT_EQ(records[0].sensitivity, wanted.sensitivity);
    EXPECT_EQ(records[0].bytes, state().size());
    EXPECT_EQ(files->load(id).value(), state());
    EXPECT_TRUE(files->touch(id));
    files->drop(id);
    EXPECT_FALSE(files->touch(id));
    EXPECT_EQ(files->load(id).error().code(), ErrorCode::not_found);
}

TEST_F(PrefixFilesTest, NothingOfItIsReadable) {
    const auto files = open();
    const std::string bytes = bytes_of(keep(*files, std::string(3000, 'k')));
    for (const char* word : {"anna", "law@", "v9", "nano", "kkkk"})
        EXPECT_EQ(bytes.find(word), std::string::npos) << word;
    EXPECT_EQ(fs::status(folder_ / "prefixes").permissions(), fs::perms::owner_all);
}

TEST_F(PrefixFilesTest, AModelSeesItsOwnAlone) {
    keep(*open());
    EXPECT_TRUE(open(1U << 30U, "m2")->list().empty());
    EXPECT_EQ(open()->list().size(), 1U);
}

// One bit anywhere, any length but the right one, a piece in the place of another, another name.
TEST_F(PrefixFilesTest, RefusesEveryDamage) {
    const auto files = open();
    const fs::path file = keep(*files);
    const std::string good = bytes_of(file);
    const auto refused = [&](const std::string& bytes, const std::string& what) {
        write(file, bytes);
        const auto read = read_prefix_bytes(file, vault());
        ASSERT_FALSE(read) << what;
        EXPECT_EQ(read.error().code(), ErrorCode::corrupt) << what;
    };
    for (const std::size_t at : {std::size_t{0}, std::size_t{16}, std::size_t{17}, std::size_t{40},
                                 good.size() / 2, good.size() - 1}) {
        std::string bytes = good;
        bytes[at] = static_cast<char>(bytes[at] ^ 4);
        refused(bytes, fmt::format("bit at {}", at));
    }
    for (const std::size_t length :
         {std::size_t{0}, std::size_t{7}, std::size_t{18}, std::size_t{100}, good.size() - 1})
        refused(good.substr(0, length), fmt::format("{} bytes", length));
    refused(good + "x", "longer");
    const std::size_t piece = (1U << 20U) + 40;
    const std::size_t last = good.size() - (524'291 + 40);
    std::string swapped = good;
    swapped.replace(last - 2 * piece, piece, good, last - piece, piece);
    swapped.replace(last - piece, piece, good, last - 2 * piece, piece);
    refused(swapped, "pieces in another order");
    write(file, good);
    EXPECT_TRUE(read_prefix_bytes(file, vault()));
    fs::rename(file, prefix_path(folder_ / "prefixes", "another"));
    EXPECT_FALSE(read_prefix_bytes(prefix_path(folder_ / "prefixes", "another"), vault()));
}

TEST_F(PrefixFilesTest, DamagedOnesAreNamedAndThenRemoved) {
    fs::path cut;
    fs::path flipped;
    {
        const auto files = open();
        cut = keep(*files);
        flipped = keep(*files);
    }
    write(cut, bytes_of(cut).substr(0, 5000));
    std::string bytes = bytes_of(flipped);
    bytes[bytes.size() - 9] = static_cast<char>(bytes[bytes.size() - 9] ^ 1);
    write(flipped, bytes);
    const auto damaged = [&](bool whole) {
        std::size_t count = 0;
        for (const FoundPrefix& found : find_prefixes(folder_ / "prefixes", vault(), whole))
            count += found.damaged ? 1U : 0U;
        return count;
    };
    EXPECT_EQ(damaged(false), 1U);
    EXPECT_EQ(damaged(true), 2U);
    const auto files = open();
    EXPECT_FALSE(fs::exists(cut));
    EXPECT_EQ(files->load(flipped.stem().string()).error().code(), ErrorCode::corrupt);
    EXPECT_FALSE(fs::exists(flipped));
}

TEST_F(PrefixFilesTest, AnotherKeyOpensNothing) {
    const fs::path file = keep(*open());
    EXPECT_TRUE(open(1U << 30U, "m1", "another.key")->list().empty());
    EXPECT_FALSE(fs::exists(file));
}

TEST_F(PrefixFilesTest, WhatWasNotUsedForLongestGoesFirst) {
    const auto files = open(10U << 20U);  // three of them
    std::vector<fs::path> kept;
    for (char i = 0; i < 3; ++i) {
        kept.push_back(keep(*files, state(i)));
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    ASSERT_TRUE(files->touch(kept[0].stem().string()));
    kept.push_back(keep(*files, state(3)));
    EXPECT_TRUE(fs::exists(kept[0]));
    EXPECT_FALSE(fs::exists(kept[1]));
    EXPECT_TRUE(fs::exists(kept[2]));
    EXPECT_TRUE(fs::exists(kept[3]));
    const auto larger = files->save(record(), std::string(11U << 20U, 'x'));
    ASSERT_FALSE(larger);
    EXPECT_EQ(larger.error().code(), ErrorCode::too_large);
    EXPECT_NE(larger.error().message().find("engine.prefix_disk_mib"), std::string::npos);
    // A smaller budget holds from the start, and none at all removes everything.
    EXPECT_EQ(open(5U << 20U)->list().size(), 1U);
    EXPECT_TRUE(open(0)->list().empty());
    EXPECT_FALSE(fs::exists(kept[3]));
}

TEST_F(PrefixFilesTest, KeepsToTheRetentionOfTheClass) {
    const auto files = open();
    EXPECT_FALSE(files->keeps(Sensitivity::secret));
    const auto secret = files->save(record(Sensitivity::secret), state());
    ASSERT_FALSE(secret);
    EXPECT_EQ(secret.error().code(), ErrorCode::denied);
    const fs::path file = keep(*files);
    clock_.time += std::chrono::days(29);
    files->expire();
    EXPECT_TRUE(fs::exists(file));
    clock_.time += std::chrono::days(1);
    EXPECT_EQ(files->load(file.stem().string()).error().code(), ErrorCode::not_found);
    files->expire();
    EXPECT_FALSE(fs::exists(file));
}

TEST_F(PrefixFilesTest, HalfWrittenFilesGo) {
    open();
    write(folder_ / "prefixes" / "x.part", "half");
    open();
    EXPECT_FALSE(fs::exists(folder_ / "prefixes" / "x.part"));
}

}  // namespace
}  // namespace molly::app
