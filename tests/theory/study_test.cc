// A whole study: its claims, and that they are the same for any threads.
#include "theory/study.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "core/thread_parallel.h"

namespace polyattn::theory::study_test {
namespace {

using test::TaskOrder;
using test::ThreadParallel;

StudyOptions small() {
  StudyOptions options;
  options.degrees = {1, 3};
  options.lengths = {8, 32};
  options.width = 8;
  options.samples = 120;
  return options;
}

std::vector<Claim> claims_of(const StudyOptions& options, Parallel& parallel) {
  Study study(options, parallel);
  for (const Step& step : study.steps()) {
    EXPECT_GT(step.effort, 0) << step.label;
    step.run();
  }
  return study.claims();
}

TEST(Study, HasEveryClaim) {
  SerialParallel serial;
  const auto claims = claims_of(small(), serial);
  std::vector<std::string> ids;
  for (const Claim& claim : claims) {
    ids.push_back(claim.id);
    EXPECT_FALSE(claim.rows.empty()) << claim.id;
    EXPECT_TRUE(holds(claim)) << claim.id;
  }
  EXPECT_EQ(ids, (std::vector<std::string>{"softmax-norm", "softmax-gradient",
                                           "gaussian-norms", "projected-norms",
                                           "causal-row-form", "typical-softmax",
                                           "other-tokens"}));
  EXPECT_GT(chance_comparisons(claims), 20);
}

TEST(Study, DoesNotDependOnThreadsButOnTheSeed) {
  ThreadParallel one(1), two(2, TaskOrder::kShuffled);
  StudyOptions options = small();
  const auto a = claims_of(options, one);
  const auto b = claims_of(options, two);
  options.seed = 2;
  const auto c = claims_of(options, two);
  ASSERT_EQ(a.size(), b.size());
  bool seed_matters = false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].rows.size(), b[i].rows.size());
    for (std::size_t r = 0; r < a[i].rows.size(); ++r) {
      const Row &x = a[i].rows[r], &y = b[i].rows[r];
      EXPECT_EQ(x.measured, y.measured) << a[i].id << " " << x.series;
      EXPECT_EQ(x.strain, y.strain) << a[i].id << " " << x.series;
      if (r < c[i].rows.size() && x.measured != c[i].rows[r].measured) {
        seed_matters = true;
      }
    }
  }
  EXPECT_TRUE(seed_matters);
}

TEST(Study, RefusesOptionsOutOfRangeOrOrder) {
  SerialParallel serial;
  const auto refused = [&](auto change) {
    StudyOptions options = small();
    change(options);
    EXPECT_THROW(Study(options, serial), std::invalid_argument);
  };
  refused([](StudyOptions& o) { o.degrees = {}; });
  refused([](StudyOptions& o) { o.degrees = {0}; });
  refused([](StudyOptions& o) { o.degrees = {9}; });
  refused([](StudyOptions& o) { o.degrees = {2, 1}; });
  refused([](StudyOptions& o) { o.lengths = {}; });
  refused([](StudyOptions& o) { o.lengths = {1}; });
  refused([](StudyOptions& o) { o.lengths = {8, 8}; });
  refused([](StudyOptions& o) { o.lengths = {kMostTokens + 1}; });
  refused([](StudyOptions& o) { o.width = 0; });
  refused([](StudyOptions& o) { o.samples = kLeastSamples - 1; });
}

}  // namespace
}  // namespace polyattn::theory::study_test
