// The same bits for any number of threads, from any thread, and every time.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "polyattn/torch/attention.h"
#include "torch/parallel.h"
#include "torch/tensors.h"

namespace polyattn {
namespace threads_test {

using test::expect_same_bits;
using test::leaf;
using test::Random;

using Options = AttentionOptions;
using Tensors = std::vector<at::Tensor>;

struct Threads {
  explicit Threads(int count) : before(at::get_num_threads()) {
    at::set_num_threads(count);
  }
  ~Threads() { at::set_num_threads(before); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
  int before;
};

// Output, gradients and norms. Long enough to be cut into several tasks.
Tensors run(const std::string& formula, bool by_head = false) {
  const Tensors t = {leaf(Random(1).normal({2, 4, 150, 16}, at::kFloat)),
                     leaf(Random(2).normal({2, 2, 170, 16}, at::kFloat)),
                     leaf(Random(3).normal({2, 2, 170, 24}, at::kFloat)),
                     leaf(Random(4).normal({4, 4}, at::kFloat))};
  Options options = Options().activation(formula).gqa(true).causal(true);
  if (by_head) options.coefficients(t[3]);
  const auto [o, norms] = attention_with_norms(t[0], t[1], t[2], options);
  Tensors result =
      test::gradients({o}, t, {Random(5).normal({2, 4, 150, 24}, at::kFloat)});
  result.insert(result.end(), {o, norms.weight, norms.jacobian,
                               norms.max_abs_score, norms.non_finite});
  return result;
}

void expect_same(const Tensors& got, const Tensors& want) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    expect_same_bits(std::to_string(i).c_str(), got[i], want[i]);
  }
}

TEST(Threads, AnyNumberGivesTheSameBits) {
  for (const char* formula : {"softmax", "x^3/sqrt(N)", "x^4/sum", "sigmoid"}) {
    SCOPED_TRACE(formula);
    Tensors one;
    {
      const Threads threads(1);
      one = run(formula);
      expect_same(run(formula), one);
    }
    for (const int count : {2, 3}) {
      const Threads threads(count);
      ASSERT_EQ(at::get_num_threads(), count);
      expect_same(run(formula), one);
    }
  }
}

TEST(Threads, CoefficientsByHead) {
  Tensors one;
  {
    const Threads threads(1);
    one = run("x/sqrt(N)", true);
  }
  const Threads threads(3);
  expect_same(run("x/sqrt(N)", true), one);
}

TEST(Threads, FromWithinAParallelRegion) {
  const Threads threads(3);
  const at::Tensor q = Random(6).normal({2, 2, 90, 8});
  const at::Tensor want = attention(q, q, q);
  std::vector<at::Tensor> got(6);
  at::parallel_for(0, 6, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      got[static_cast<std::size_t>(i)] = attention(q, q, q);
    }
  });
  for (const at::Tensor& o : got) expect_same_bits("o", o, want);
}

TEST(Threads, FromSeveralThreadsAtOnce) {
  const Tensors want = run("x^3/sqrt(N)");
  std::vector<Tensors> got(3);
  std::vector<std::thread> threads;
  for (Tensors& own : got) {
    threads.emplace_back([&own] { own = run("x^3/sqrt(N)"); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Tensors& own : got) expect_same(own, want);
}

// What the core asks of a Parallel: each task once, worker numbers in range,
// and no two calls at once with the same.
TEST(TorchParallelTest, RunsEachTaskOnce) {
  for (const int count : {1, 2, 3}) {
    const Threads threads(count);
    TorchParallel parallel;
    ASSERT_EQ(parallel.workers(), count);
    for (const std::int64_t tasks : {0, 1, 2, 100}) {
      std::vector<std::atomic<int>> done(static_cast<std::size_t>(tasks));
      std::vector<std::atomic<int>> inside(static_cast<std::size_t>(count));
      std::atomic<int> wrong{0};
      parallel.run(tasks, [&](std::int64_t task, int worker) {
        if (worker < 0 || worker >= count) {
          ++wrong;
          return;
        }
        const auto own = static_cast<std::size_t>(worker);
        if (inside[own]++ != 0) ++wrong;
        ++done[static_cast<std::size_t>(task)];
        --inside[own];
      });
      EXPECT_EQ(wrong, 0);
      for (const auto& times : done) EXPECT_EQ(times, 1);
    }
  }
}

// Each task waits for the other. One after the other, the first would wait for
// ever; half a minute is long enough for any machine to start a thread.
TEST(TorchParallelTest, RunsTasksAtTheSameTime) {
  const Threads threads(2);
  std::atomic<int> arrived{0}, met{0}, workers{0};
  TorchParallel().run(2, [&](std::int64_t, int worker) {
    workers += worker;
    ++arrived;
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (arrived < 2 && std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
    }
    if (arrived == 2) ++met;
  });
  EXPECT_EQ(met, 2) << "is it compiled with OpenMP, as torch is?";
  EXPECT_EQ(workers, 0 + 1);
}

TEST(TorchParallelTest, HasOneWorkerWithinAParallelRegion) {
  const Threads threads(3);
  std::atomic<int> outside{0}, several{0};
  at::parallel_for(0, 3, 1, [&](std::int64_t, std::int64_t) {
    if (!at::in_parallel_region()) ++outside;
    if (TorchParallel().workers() != 1) ++several;
  });
  EXPECT_EQ(outside, 0) << "this test is not compiled with OpenMP";
  EXPECT_EQ(several, 0);
}

}  // namespace threads_test
}  // namespace polyattn
