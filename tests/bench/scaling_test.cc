#include "bench/scaling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "base/program.h"
#include "bench/schedule.h"
#include "core/plan.h"

namespace polyattn::bench::scaling_test {
namespace {

TEST(Makespan, FreeWorkersTakeTheNextTask) {
  EXPECT_EQ(makespan({}, 4), 0);
  EXPECT_EQ(makespan({1, 2, 3}, 1), 6);
  // 3 | 1 1 1 | 1 1: the second worker takes three short ones meanwhile.
  EXPECT_EQ(makespan({3, 1, 1, 1, 1, 1}, 2), 4);
  EXPECT_EQ(makespan({1, 1, 1, 1, 1, 3}, 2), 5);  // a long one at the end
  EXPECT_EQ(makespan({1, 2, 3}, 64), 3);
}

TEST(ScheduleBound, CountsBarriersAndWhatIsSerial) {
  const CallTimes call{{TaskTimes(8, 1), TaskTimes(1, 1)}, 0.5};
  EXPECT_EQ(call.work(), 9.5);
  EXPECT_EQ(schedule_bound(call, 1, 0.25), 1);
  // A single task has nobody to wait for.
  EXPECT_DOUBLE_EQ(schedule_bound(call, 4, 0.25), 9.5 / (4 * (2.75 + 1)));
  EXPECT_EQ(schedule_bound({}, 4, 0.25), 1);
}

TEST(ScheduleBound, EqualTasksFillTheirWorkers) {
  for (const int workers : kScalingWorkers) {
    if (workers == 1) continue;
    const CallTimes call{{TaskTimes(512, 1)}};
    EXPECT_EQ(schedule_bound(call, workers, 0), 1) << workers;
    const CallTimes one_more{{TaskTimes(512 + 1, 1)}};
    EXPECT_LT(schedule_bound(one_more, workers, 0), 1) << workers;
  }
}

TEST(TimingParallel, KeepsTheLeastTimeOfEachTask) {
  TimingParallel parallel;
  std::vector<std::int64_t> seen;
  const auto call = [&] {
    parallel.run(3, [&](std::int64_t task, int worker) {
      EXPECT_EQ(worker, 0);
      seen.push_back(task);
    });
    parallel.run(1, [](std::int64_t, int) {});
  };
  call();
  parallel.begin_call();
  call();
  EXPECT_EQ(seen, std::vector<std::int64_t>({0, 1, 2, 0, 1, 2}));
  ASSERT_EQ(parallel.runs().size(), 2U);
  EXPECT_EQ(parallel.runs()[0].size(), 3U);
  for (const double seconds : parallel.runs()[0]) EXPECT_LT(seconds, 1);
  parallel.begin_call();
  EXPECT_THROW(parallel.run(2, [](std::int64_t, int) {}), std::logic_error);
  EXPECT_THROW(parallel.begin_call(), std::logic_error);
}

// B, H, N of attention with D = 64.
struct Shape {
  std::int64_t batch, heads, n;
};

Problem problem_of(const Shape& s) {
  const Extents size = {s.batch, s.heads, s.n, 64};
  const ConstTensor t{nullptr, DType::kF32, size, contiguous_strides(size)};
  Problem p{};
  p.in = {.q = t, .k = t, .v = t};
  p.batch = s.batch;
  p.heads = p.kv_heads = s.heads;
  p.n = p.m = s.n;
  p.d = p.e = 64;
  p.compute = DType::kF32;
  return p;
}

// Made up: a core that does 2e11 operations a second.
double seconds_of_scores(std::int64_t rows, std::int64_t keys,
                         double products) {
  return 2 * products * 64 * static_cast<double>(rows * keys) / 2e11;
}

CallTimes forward_times(const Problem& p, int strip) {
  const ForwardPlan plan = plan_forward(p, strip);
  TaskTimes tasks;
  for (std::int64_t task = 0; task < plan.tasks(p); ++task) {
    double seconds = 0;
    for (std::int64_t unit = task * plan.units;
         unit < std::min((task + 1) * plan.units, plan.all_units(p)); ++unit) {
      const std::int64_t begin =
          (plan.blocks - 1 - unit % plan.blocks) * plan.block_rows();
      seconds +=
          seconds_of_scores(std::min(plan.block_rows(), p.n - begin), p.m, 2);
    }
    tasks.push_back(seconds);
  }
  return {{tasks}};
}

CallTimes backward_times(const Problem& p, int strip) {
  const BackwardPlan plan = plan_backward(p, strip);
  CallTimes call;
  const auto rows_of = [](std::int64_t chunk, std::int64_t size,
                          std::int64_t total) {
    return std::min((chunk + 1) * size, total) - std::min(chunk * size, total);
  };
  if (plan.chunks == 1) {
    const double pair = seconds_of_scores(p.n, p.m, 5);
    call.runs.emplace_back();
    for (std::int64_t line = 0; line < plan.all_lines(); line += plan.lines)
      call.runs[0].push_back(pair * static_cast<double>(std::min(
                                        plan.lines, plan.all_lines() - line)));
    return call;
  }
  for (std::int64_t first = 0; first < plan.pairs(p);
       first += plan.pairs_at_once) {
    const std::int64_t count =
        std::min(plan.pairs_at_once, plan.pairs(p) - first);
    for (std::int64_t round = 0; round < plan.chunks; ++round) {
      TaskTimes& run = call.runs.emplace_back();
      for (std::int64_t task = 0; task < count * plan.chunks; ++task) {
        const std::int64_t k = task % plan.chunks;
        run.push_back(seconds_of_scores(
            rows_of(plan.query_chunk(round, k), plan.q_chunk, p.n),
            rows_of(k, plan.k_chunk, p.m), 5));
      }
    }
  }
  return call;
}

double bound(const CallTimes& call, int workers) {
  return schedule_bound(call, workers, kBarrierSeconds);
}

TEST(Cut, ForwardKeepsWorkersBusy) {
  for (const int strip : {16, 32}) {
    for (const Shape& s :
         {Shape{1, 16, 4096}, Shape{1, 1, 16384}, Shape{16, 12, 197}}) {
      SCOPED_TRACE(s.n);
      const Problem p = problem_of(s);
      const CallTimes call = forward_times(p, strip);
      EXPECT_GE(call.runs[0].size(), 128U);
      EXPECT_NEAR(call.work(), 4.0 * 64 * s.batch * s.heads * s.n * s.n / 2e11,
                  1e-9);
      for (const int workers : {2, 4, 8, 16, 32, 64})
        EXPECT_GE(bound(call, workers), 0.9) << workers;
      EXPECT_GE(bound(call, 256), 0.45);
    }
  }
}

TEST(Cut, BackwardKeepsWorkersBusy) {
  for (const int strip : {16, 32}) {
    for (const Shape& s :
         {Shape{1, 16, 4096}, Shape{1, 8, 32768}, Shape{16, 12, 197}}) {
      SCOPED_TRACE(s.n);
      const CallTimes call = backward_times(problem_of(s), strip);
      EXPECT_NEAR(call.work(), 10.0 * 64 * s.batch * s.heads * s.n * s.n / 2e11,
                  1e-9);
      for (const int workers : {2, 4, 8, 16, 32, 64})
        EXPECT_GE(bound(call, workers), 0.85) << workers;
      EXPECT_GE(bound(call, 256), 0.2);
    }
    // A single head: tiles of 512, which one core does not pay for.
    const CallTimes single = backward_times(problem_of({1, 1, 16384}), strip);
    EXPECT_EQ(single.runs.size(), 32U);
    EXPECT_GE(bound(single, 32), 0.95);
  }
}

// Short sequences go several to a task, but not to fewer than there may be
// workers.
TEST(Cut, TasksAreWorthTheirName) {
  const Problem p = problem_of({1, 512, 16});
  const ForwardPlan plan = plan_forward(p, 32);
  EXPECT_GT(plan.units, 1);
  EXPECT_GE(plan.tasks(p), 32);
  EXPECT_EQ(plan_forward(problem_of({64, 3, 49}), 32).units, 1);
  EXPECT_LE(plan_forward(problem_of({1 << 12, 16, 49}), 32)
                .tasks(problem_of({1 << 12, 16, 49})),
            2048);
  EXPECT_EQ(
      plan_forward(problem_of({1, 3, 0}), 32).tasks(problem_of({1, 3, 0})), 3);
  EXPECT_EQ(plan_backward(problem_of({1, 3, 0}), 32).chunks, 1);
  EXPECT_EQ(plan_backward(problem_of({0, 3, 7}), 32).chunks, 1);
}

TEST(Scaling, HasTheGoals) {
  const auto cases = scaling_cases();
  ASSERT_EQ(cases.size(), 10U);
  for (const ScalingCase& c : cases) {
    const bool forward =
        c.shape.op == Op::kForward && c.shape.path != Path::kLinear;
    EXPECT_EQ(c.goal, forward ? 0.9 : 0.85);
  }
}

TEST(Scaling, MeasuresAndPrints) {
  Options options;
  options.quick = true;
  options.longest = 256;
  options.only = "[1,1,";
  const auto rows = bench_scaling(options);
  ASSERT_EQ(rows.size(), 2U);
  for (const ScalingRow& row : rows) {
    EXPECT_EQ(row.goal, 0);  // not the shape that it is for
    EXPECT_NEAR(bound_at(row, 1), 1, 1e-9);
    EXPECT_LE(bound_at(row, 256), static_cast<double>(row.tasks) / 256);
  }
  const std::string text = scaling_text(rows);
  EXPECT_NE(text.find("forward x^3/sqrt(N) [1,1,256,64]"), std::string::npos);
  EXPECT_NE(text.find("Schedule bound"), std::string::npos) << text;
  const auto json = scaling_json(rows);
  EXPECT_EQ(json["rows"][0]["schedule_bounds"].size(), 9U);
  EXPECT_FALSE(json["rows"][0].contains("goal"));
  options.only = "nothing";
  EXPECT_THROW(bench_scaling(options), base::UsageError);
}

TEST(Scaling, TellsWhetherAGoalWasReached) {
  ScalingRow row{.name = "call", .runs = 1, .tasks = 9, .seconds = 1};
  row.bounds = {1, 1, 1, 1, 1, 1, 0.9, 0.5, 0.25};
  row.goal = 0.9;
  EXPECT_NE(scaling_text({row}).find("0.90 reached"), std::string::npos);
  row.goal = 0.91;
  EXPECT_NE(scaling_text({row}).find("0.91 missed"), std::string::npos);
  EXPECT_EQ(scaling_json({row})["rows"][0]["goal"], 0.91);
}

}  // namespace
}  // namespace polyattn::bench::scaling_test
