// Every way to run tasks runs each of them once.
#include "polyattn/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/thread_parallel.h"

namespace polyattn::test {
namespace {

using Make = std::function<std::unique_ptr<Parallel>()>;

struct Way {
  const char* name;
  Make make;
};

void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }

class ParallelTest : public ::testing::TestWithParam<Way> {
 protected:
  std::unique_ptr<Parallel> parallel_ = GetParam().make();
};

INSTANTIATE_TEST_SUITE_P(
    Ways, ParallelTest,
    ::testing::Values(
        Way{"serial", [] { return std::make_unique<SerialParallel>(); }},
        Way{"openmp", [] { return std::make_unique<DefaultParallel>(); }},
        Way{"openmp1", [] { return std::make_unique<DefaultParallel>(1); }},
        Way{"openmp5", [] { return std::make_unique<DefaultParallel>(5); }},
        Way{"threads4", [] { return std::make_unique<ThreadParallel>(4); }},
        Way{"shuffled4",
            [] {
              return std::make_unique<ThreadParallel>(4, TaskOrder::kShuffled);
            }}),
    [](const auto& way) { return std::string(way.param.name); });

using Counts = std::vector<std::atomic<int>>;

void expect_each_once(const Counts& counts) {
  for (std::size_t task = 0; task < counts.size(); ++task)
    EXPECT_EQ(counts[task], 1) << "task " << task;
}

TEST_P(ParallelTest, RunsEachTaskOnce) {
  for (const std::int64_t tasks : {0, 1, 2, 5, 1000}) {
    Counts counts(static_cast<std::size_t>(tasks));
    parallel_->run(tasks, [&](std::int64_t task, int) {
      ++counts[static_cast<std::size_t>(task)];
    });
    expect_each_once(counts);
  }
}

TEST_P(ParallelTest, AWorkerDoesOneTaskAtATime) {
  ASSERT_GE(parallel_->workers(), 1);
  Counts inside(static_cast<std::size_t>(parallel_->workers()));
  std::atomic<int> wrong = 0;
  parallel_->run(2000, [&](std::int64_t, int worker) {
    if (worker < 0 || worker >= parallel_->workers()) {
      ++wrong;
      return;
    }
    auto& mine = inside[static_cast<std::size_t>(worker)];
    if (mine.fetch_add(1) != 0) ++wrong;
    mine.fetch_sub(1);
  });
  EXPECT_EQ(wrong, 0);
}

TEST_P(ParallelTest, WorksWithinATask) {
  constexpr std::int64_t kOuter = 6, kInner = 9;
  Counts counts(kOuter * kInner);
  std::atomic<int> wrong = 0;
  parallel_->run(kOuter, [&](std::int64_t outer, int) {
    const std::unique_ptr<Parallel> inner = GetParam().make();
    inner->run(kInner, [&](std::int64_t task, int worker) {
      if (worker < 0 || worker >= inner->workers()) ++wrong;
      ++counts[static_cast<std::size_t>(outer * kInner + task)];
    });
  });
  expect_each_once(counts);
  EXPECT_EQ(wrong, 0);
}

TEST_P(ParallelTest, AnExceptionReachesTheCaller) {
  const auto fail_at = [](std::int64_t wanted) {
    return [wanted](std::int64_t task, int) {
      if (task == wanted) throw std::runtime_error("task failed");
    };
  };
  for (const std::int64_t tasks : {1, 40})
    EXPECT_THROW(parallel_->run(tasks, fail_at(tasks - 1)), std::runtime_error);
  EXPECT_NO_THROW(parallel_->run(40, fail_at(-1)));
}

TEST_P(ParallelTest, ManyExceptionsAreOne) {
  EXPECT_THROW(
      parallel_->run(
          40, [](std::int64_t, int) { throw std::runtime_error("each"); }),
      std::runtime_error);
}

TEST(DefaultParallel, HasTheThreadsThatWereAskedFor) {
  EXPECT_EQ(SerialParallel().workers(), 1);
  EXPECT_EQ(DefaultParallel(1).workers(), 1);
  EXPECT_GE(DefaultParallel().workers(), 1);
  EXPECT_LE(DefaultParallel(3).workers(), 3);
  EXPECT_THROW(DefaultParallel(-1), std::invalid_argument);
}

// The callable is held by reference and may be changed by the call.
TEST(TaskBody, CallsWhatItRefersTo) {
  std::int64_t sum = 0;
  auto add = [&sum, calls = 0](std::int64_t task, int worker) mutable {
    sum += task + worker + ++calls;
  };
  const TaskBody body(add);
  body(10, 1);
  body(20, 2);
  EXPECT_EQ(sum, 10 + 1 + 1 + 20 + 2 + 2);
}

}  // namespace
}  // namespace polyattn::test
