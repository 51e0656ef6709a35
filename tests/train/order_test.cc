#include "train/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <stdexcept>

#include "train/random.h"

namespace polyattn::train::order_test {

std::vector<std::int64_t> batch_of(BatchOrder& order, std::int64_t index) {
  const auto batch = order.batch(index);
  return {batch.begin(), batch.end()};
}

TEST(BatchOrder, EveryEpochIsAnotherPermutationWithoutTheRest) {
  BatchOrder order({.count = 23, .batch = 5, .seed = 7});
  ASSERT_EQ(order.batches_per_epoch(), 4);
  std::vector<std::vector<std::int64_t>> epochs(2);
  for (std::int64_t i = 0; i < 8; ++i) {
    const auto batch = batch_of(order, i);
    ASSERT_EQ(batch.size(), 5U);
    auto& epoch = epochs[static_cast<std::size_t>(i / 4)];
    epoch.insert(epoch.end(), batch.begin(), batch.end());
  }
  for (const auto& epoch : epochs) {
    const std::set<std::int64_t> seen(epoch.begin(), epoch.end());
    EXPECT_EQ(seen.size(), 20U);
    EXPECT_GE(*seen.begin(), 0);
    EXPECT_LT(*seen.rbegin(), 23);
  }
  EXPECT_NE(epochs[0], epochs[1]);
}

TEST(BatchOrder, ABatchDependsOnSeedAndIndexAlone) {
  BatchOrder forward({.count = 40, .batch = 4, .seed = 1});
  BatchOrder backward({.count = 40, .batch = 4, .seed = 1});
  BatchOrder other({.count = 40, .batch = 4, .seed = 2});
  std::vector<std::vector<std::int64_t>> batches;
  for (std::int64_t i = 0; i < 30; ++i) batches.push_back(batch_of(forward, i));
  for (std::int64_t i = 29; i >= 0; --i) {
    EXPECT_EQ(batch_of(backward, i), batches[static_cast<std::size_t>(i)]);
  }
  EXPECT_NE(batch_of(other, 0), batches[0]);
}

TEST(BatchOrder, SortedByLengthHoldsLessPadding) {
  constexpr std::int64_t kCount = 512;
  std::vector<std::int64_t> lengths;
  Random random(3, Stream::kOrder, 0);
  for (std::int64_t i = 0; i < kCount; ++i) {
    lengths.push_back(1 + random.below(200));
  }
  const auto padding = [&](BatchOrder& order) {
    std::int64_t sum = 0;
    std::set<std::int64_t> seen;
    for (std::int64_t i = 0; i < order.batches_per_epoch(); ++i) {
      const auto batch = batch_of(order, i);
      seen.insert(batch.begin(), batch.end());
      std::int64_t longest = 0;
      for (const auto e : batch) {
        longest = std::max(longest, lengths[static_cast<std::size_t>(e)]);
      }
      for (const auto e : batch) {
        sum += longest - lengths[static_cast<std::size_t>(e)];
      }
    }
    EXPECT_EQ(static_cast<std::int64_t>(seen.size()), kCount);
    return sum;
  };
  BatchOrder plain({.count = kCount, .batch = 16, .seed = 1});
  BatchOrder sorted({.count = kCount, .batch = 16, .seed = 1}, lengths);
  EXPECT_LT(10 * padding(sorted), padding(plain));
  // The batches themselves come in no order of length.
  std::vector<std::int64_t> firsts;
  for (std::int64_t i = 0; i < 32; ++i) {
    firsts.push_back(
        lengths[static_cast<std::size_t>(batch_of(sorted, i).front())]);
  }
  EXPECT_FALSE(std::is_sorted(firsts.begin(), firsts.end()));
}

TEST(BatchOrder, RefusesLessThanABatch) {
  EXPECT_THROW(BatchOrder({.count = 3, .batch = 4, .seed = 1}),
               std::invalid_argument);
  EXPECT_THROW(BatchOrder({.count = 3, .batch = 0, .seed = 1}),
               std::invalid_argument);
}

// Published runs rest on them.
TEST(Random, IsWhatItWas) {
  EXPECT_EQ(seed_of(7, Stream::kOrder, 5), 5704952132319151503U);
  Random random(7, Stream::kAugment, 5);
  EXPECT_DOUBLE_EQ(random.symmetric_beta(0.2), 0x1.9be55f101aed2p-2);
  EXPECT_EQ(random.below(1000003), 515936);
  EXPECT_EQ(random.uniform(), 0x1.c649ae225c8fcp-2);
  EXPECT_EQ(random.next(), 8631711245087357272U);
}

TEST(Random, StreamsAndIndicesAreIndependent) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    for (std::uint64_t index = 0; index < 4; ++index) {
      seen.insert(Random(seed, Stream::kOrder, index).next());
      seen.insert(Random(seed, Stream::kAugment, index).next());
    }
  }
  EXPECT_EQ(seen.size(), 32U);
}

// Mean 1/2 and variance 1 / (4 (2 a + 1)). 20000 draws: the standard error of
// the mean is at most 0.5 / sqrt(20000) = 0.0035; five of them are allowed.
TEST(Random, BetaHasItsMoments) {
  for (const double a : {0.2, 1.0, 4.0}) {
    Random random(9, Stream::kAugment, 0);
    constexpr int kDraws = 20000;
    double sum = 0;
    double square = 0;
    for (int i = 0; i < kDraws; ++i) {
      const double x = random.symmetric_beta(a);
      ASSERT_GE(x, 0);
      ASSERT_LE(x, 1);
      sum += x;
      square += x * x;
    }
    const double mean = sum / kDraws;
    EXPECT_NEAR(mean, 0.5, 0.018) << a;
    EXPECT_NEAR(square / kDraws - mean * mean, 1 / (4 * (2 * a + 1)), 0.01)
        << a;
  }
}

}  // namespace polyattn::train::order_test
