#include "seal/seal.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace molly::seal {
namespace {

namespace fs = std::filesystem;

class Folder : public testing::Test {
protected:
    void SetUp() override {
        folder_ = fs::temp_directory_path() / ("molly-seal-" + random_token(12));
        fs::create_directory(folder_);
    }
    void TearDown() override { fs::remove_all(folder_); }
    fs::path folder_;
};

using KeyFiles = Folder;

TEST(Sha256, MatchesTheStandardsExamples) {
    EXPECT_EQ(to_hex(sha256("")),
              "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(to_hex(sha256("abc")),
              "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256, ALinkIsTheHashOfBothParts) {
    const Hash previous = sha256("first");
    std::string joined(reinterpret_cast<const char*>(previous.data()), previous.size());
    joined.append("second");
    EXPECT_EQ(sha256_link(previous, "second"), sha256(joined));
}

TEST(Sha256, PiecesGiveTheHashOfTheWhole) {
    HashStream stream;
    stream.add("a");
    stream.add("");
    stream.add("bc");
    EXPECT_EQ(stream.take(), sha256("abc"));
}

TEST_F(Folder, HashesAFileAndReportsProgress) {
    std::ofstream(folder_ / "file") << std::string(3U << 20U, 'x');
    std::uint64_t last = 0;
    const auto hash = sha256_file(folder_ / "file", [&](std::uint64_t done) { last = done; });
    ASSERT_TRUE(hash.has_value());
    EXPECT_EQ(*hash, sha256(std::string(3U << 20U, 'x')));
    EXPECT_EQ(last, 3U << 20U);
    EXPECT_EQ(sha256_file(folder_ / "absent").error().code(), ErrorCode::not_found);
}

TEST(KeyedHash, MatchesRfc4231Case2) {
    EXPECT_EQ(to_hex(keyed_hash("Jefe", "what do ya want for nothing?")),
              "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(Text, HexAndBase64RoundTripAndRefuseWhatTheyAreNot) {
    const std::string bytes("\x00\xff\x10 molly", 9);
    EXPECT_EQ(from_hex(to_hex(bytes)).value(), bytes);
    EXPECT_EQ(from_base64(to_base64(bytes)).value(), bytes);
    EXPECT_EQ(to_base64("Ma"), "TWE=");
    EXPECT_FALSE(from_hex("0g").has_value());
    EXPECT_FALSE(from_hex("abc").has_value());
    EXPECT_FALSE(from_base64("T*E=").has_value());
    EXPECT_FALSE(from_base64("TWE= ").has_value());
}

TEST(Random, TokensDifferAndUseTheWholeAlphabet) {
    std::set<char> seen;
    for (const char c : random_token(20000))
        seen.insert(c);
    EXPECT_EQ(seen.size(), 62U);
    EXPECT_NE(random_token(20), random_token(20));
}

TEST(Random, OrderedTokensSortByTime) {
    const WallTime now = std::chrono::system_clock::now();
    const std::string early = ordered_token(now);
    const std::string late = ordered_token(now + std::chrono::milliseconds(1));
    EXPECT_LT(early.substr(0, 10), late.substr(0, 10));
    EXPECT_NE(ordered_token(now), early);
    EXPECT_EQ(early.size(), 26U);
}

TEST_F(KeyFiles, ASigningKeyIsMadeOnceAndKeptPrivate) {
    const fs::path path = folder_ / "signing.key";
    const auto made = SigningKey::load_or_create(path);
    ASSERT_TRUE(made.has_value());
    struct stat found{};
    ASSERT_EQ(::stat(path.c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 0777U, 0600U);
    const auto again = SigningKey::load_or_create(path);
    ASSERT_TRUE(again.has_value());
    EXPECT_EQ(again->public_key(), made->public_key());
    EXPECT_EQ(again->key_id().size(), 16U);
    const std::string signature = again->sign("head");
    EXPECT_TRUE(verify(made->public_key(), "head", signature));
    EXPECT_FALSE(verify(made->public_key(), "heae", signature));
    std::string other = signature;
    other[3] = static_cast<char>(other[3] ^ 1);
    EXPECT_FALSE(verify(made->public_key(), "head", other));
    EXPECT_FALSE(verify(made->public_key(), "head", "short"));
}

TEST_F(KeyFiles, AFileThatOthersReadIsRefusedWithTheChmod) {
    const fs::path path = folder_ / "vault.key";
    ASSERT_TRUE(Vault::load_or_create(path).has_value());
    fs::permissions(path, fs::perms::group_read, fs::perm_options::add);
    const auto refused = Vault::load_or_create(path);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code(), ErrorCode::denied);
    EXPECT_NE(refused.error().message().find("chmod 600 " + path.string()), std::string::npos);
}

TEST_F(KeyFiles, ADamagedOrForeignFileIsCorruptAndItsTextIsNotQuoted) {
    const fs::path path = folder_ / "signing.key";
    ASSERT_TRUE(SigningKey::load_or_create(path).has_value());
    EXPECT_EQ(Vault::load_or_create(path).error().code(), ErrorCode::corrupt);
    std::ofstream(path) << "molly-signing-key hunter2\n";
    const auto damaged = SigningKey::load_or_create(path);
    ASSERT_FALSE(damaged.has_value());
    EXPECT_EQ(damaged.error().code(), ErrorCode::corrupt);
    EXPECT_EQ(damaged.error().message().find("hunter2"), std::string::npos);
    EXPECT_EQ(SigningKey::load_or_create(folder_ / "no" / "such.key").error().code(),
              ErrorCode::unavailable);
}

TEST_F(KeyFiles, ManyWhoMakeTheSameKeyAtOnceAgree) {
    std::array<std::string, 8> keys;
    {
        std::vector<std::jthread> threads;
        for (std::string& key : keys) {
            threads.emplace_back(
                [&] { key = SigningKey::load_or_create(folder_ / "k").value().public_key(); });
        }
    }
    EXPECT_EQ(std::set<std::string>(keys.begin(), keys.end()).size(), 1U);
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(KeyFiles, TheVaultOpensOnlyWhatItSealedInItsContext) {
    const auto vault = Vault::load_or_create(folder_ / "vault.key");
    ASSERT_TRUE(vault.has_value());
    const std::string sealed = vault->seal("a conversation", "resp_1");
    EXPECT_EQ(sealed.find("conversation"), std::string::npos);
    EXPECT_EQ(vault->open(sealed, "resp_1").value(), "a conversation");
    EXPECT_EQ(vault->open(sealed, "resp_2").error().code(), ErrorCode::corrupt);
    for (std::size_t i = 0; i < sealed.size(); ++i) {
        std::string changed = sealed;
        changed[i] = static_cast<char>(changed[i] ^ 1);
        EXPECT_FALSE(vault->open(changed, "resp_1").has_value()) << i;
    }
    EXPECT_FALSE(vault->open("", "resp_1").has_value());
    EXPECT_NE(vault->seal("a conversation", "resp_1"), sealed);
    EXPECT_NE(vault->derive("conversations"), vault->derive("fingerprints"));
    EXPECT_EQ(vault->derive("conversations").size(), 32U);
}

TEST(ConstantTime, ComparesContentAndLength) {
    EXPECT_TRUE(equal_in_constant_time("abc", "abc"));
    EXPECT_FALSE(equal_in_constant_time("abc", "abd"));
    EXPECT_FALSE(equal_in_constant_time("abc", "abcd"));
}

}  // namespace
}  // namespace molly::seal
