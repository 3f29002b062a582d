#include <numeric>

#include <gtest/gtest.h>

#include "store/internal/database.h"
#include "store/internal/fingerprint_index.h"
#include "store/internal/test_store.h"
#include "store/store.h"

namespace molly::store {
namespace {

using internal::FingerprintIndex;
using testing::open_store;
using testing::TemporaryFolder;

domain::Label labelled(domain::Sensitivity sensitivity) {
    domain::Label label;
    label.sensitivity = sensitivity;
    return label;
}

std::vector<std::uint64_t> prints_from(std::uint64_t first, std::size_t count) {
    std::vector<std::uint64_t> prints(count);
    for (std::size_t i = 0; i < count; ++i)
        prints[i] = (first + i) * 0x9E3779B97F4A7C15ULL;
    return prints;
}

TEST(Fingerprints, EnoughOfThemBringTheLabelBack) {
    FingerprintIndex index(1000);
    EXPECT_TRUE(index.empty());
    (void)index.add(prints_from(1, 10), labelled(domain::Sensitivity::secret), 1);
    EXPECT_FALSE(index.empty());
    EXPECT_FALSE(index.find(prints_from(9, 10), 3).has_value());
    const auto found = index.find(prints_from(6, 10), 3);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->label.sensitivity, domain::Sensitivity::secret);
    EXPECT_EQ(found->count, 5U);
}

TEST(Fingerprints, LabelsOfTwoTextsAreJoined) {
    FingerprintIndex index(1000);
    domain::Label italy = labelled(domain::Sensitivity::private_);
    italy.residency = domain::Residency({"IT"});
    (void)index.add(prints_from(1, 5), italy, 1);
    (void)index.add(prints_from(100, 5), labelled(domain::Sensitivity::secret), 1);
    auto both = prints_from(1, 5);
    const auto others = prints_from(100, 5);
    both.insert(both.end(), others.begin(), others.end());
    const auto found = index.find(both, 4);
    EXPECT_EQ(found->label.sensitivity, domain::Sensitivity::secret);
    EXPECT_EQ(found->label.residency, italy.residency);
}

TEST(Fingerprints, ALowerClassNeverReplacesAHigherOne) {
    FingerprintIndex index(1000);
    (void)index.add(prints_from(1, 5), labelled(domain::Sensitivity::secret), 1);
    (void)index.add(prints_from(1, 5), labelled(domain::Sensitivity::private_), 2);
    EXPECT_EQ(index.find(prints_from(1, 5), 5)->label.sensitivity, domain::Sensitivity::secret);
    (void)index.add(prints_from(10, 5), labelled(domain::Sensitivity::private_), 1);
    (void)index.add(prints_from(10, 5), labelled(domain::Sensitivity::secret), 2);
    EXPECT_EQ(index.find(prints_from(10, 5), 5)->label.sensitivity, domain::Sensitivity::secret);
}

TEST(Fingerprints, TheOldestOfTheLargestLabelGoFirst) {
    FingerprintIndex index(1000);
    (void)index.add(prints_from(1, 50), labelled(domain::Sensitivity::private_), 1);
    bool gone = false;
    for (std::uint64_t i = 0; i < 30; ++i) {
        const auto change =
            index.add(prints_from(1000 + i * 100, 50), labelled(domain::Sensitivity::secret), 1);
        gone = gone || change.gone.has_value();
    }
    EXPECT_TRUE(gone);
    EXPECT_FALSE(index.find(prints_from(1000, 50), 1).has_value());
    EXPECT_TRUE(index.find(prints_from(1000 + 29 * 100, 50), 50).has_value());
    EXPECT_TRUE(index.find(prints_from(1, 50), 50).has_value());
}

TEST(Fingerprints, SurviveARestart) {
    TemporaryFolder folder;
    domain::Label label = labelled(domain::Sensitivity::secret);
    label.residency = domain::Residency({"IT"});
    open_store(folder.path())->remember(prints_from(7, 20), label);
    const auto store = open_store(folder.path());
    EXPECT_TRUE(store->knows_fingerprints());
    const auto found = store->recognise(prints_from(7, 20), 20);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->label, label);
}

TEST(Fingerprints, GoWithTheTracesOfTheirClass) {
    TemporaryFolder folder;
    Options options;
    options.folder = folder.path();
    options.retention[static_cast<std::size_t>(domain::Sensitivity::secret)].traces =
        std::chrono::days(10);
    {
        const auto store = *Store::open(options);
        store->remember(prints_from(1, 20), labelled(domain::Sensitivity::secret));
        store->remember(prints_from(50, 20), labelled(domain::Sensitivity::private_));
    }
    {
        auto database =
            internal::Database::open(folder.path() / "molly.db", internal::Access::write);
        ASSERT_TRUE(database->execute("UPDATE fingerprints SET day = day - 11").has_value());
    }
    const auto store = *Store::open(options);
    EXPECT_TRUE(store->recognise(prints_from(1, 20), 20).has_value());
    const auto expired = testing::wait_for<Result<std::uint64_t>>([&] { return store->expire(); });
    EXPECT_EQ(*expired, 20U);
    EXPECT_FALSE(store->recognise(prints_from(1, 20), 1).has_value());
    EXPECT_TRUE(store->recognise(prints_from(50, 20), 20).has_value());
}

}  // namespace
}  // namespace molly::store
