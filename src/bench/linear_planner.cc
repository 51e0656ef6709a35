// Whether the planner picks the faster path, over a grid of shapes.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "bench/inputs.h"
#include "bench/linear.h"
#include "bench/timed.h"
#include "polyattn/plan.h"

namespace polyattn::bench {
namespace {

// Calls that would take longer are left out, and counted.
constexpr double kMostSeconds = 0.3;
constexpr double kGoodLoss = 1.10;

// Times both paths. Where the chosen one is twice as fast, a look is enough;
// what looks like a wrong choice may be another program that had the core.
double dense_over_linear(PlannerRow& row, const LinearSettings& settings) {
  BenchCase c = row.shape;
  c.path = Path::kDense;
  CaseRunner dense(c, settings.run.seed);
  c.path = Path::kLinear;
  CaseRunner linear(c, settings.run.seed);
  const double least = std::min(settings.run.rounds.min_seconds, 0.004);
  row.dense_ms = Timed([&] { dense.run(); }, least / 2).milliseconds_per_call();
  row.linear_ms =
      Timed([&] { linear.run(); }, least / 2).milliseconds_per_call();
  const double look = row.dense_ms / row.linear_ms;
  const bool linear_chosen = row.chosen == Path::kLinear;
  if (linear_chosen ? look > 2 : look < 0.5) return look;
  Row pair;
  summarise(take_turns({[&] { linear.run(); }, [&] { dense.run(); }},
                       {settings.run.rounds.rounds + 2, least}),
            pair);
  row.dense_ms = pair.baseline->median;
  row.linear_ms = pair.ours->median;
  return pair.value->median;
}

std::optional<PlannerRow> try_shape(const BenchCase& c,
                                    const LinearSettings& settings) {
  const Direction direction =
      c.op == Op::kForward ? Direction::kForward : Direction::kBackward;
  const PathEstimate e = estimate_paths(shape_of(c), config_of(c), direction);
  if (e.linear_seconds > kMostSeconds) return std::nullopt;
  PlannerRow row;
  row.shape = c;
  row.chosen = e.path;
  row.predicted_dense_ms = e.dense_seconds * 1e3;
  row.predicted_linear_ms = e.linear_seconds * 1e3;
  const double ratio = dense_over_linear(row, settings);
  row.loss = std::max(1.0, e.path == Path::kLinear ? 1 / ratio : ratio);
  return row;
}

std::vector<BenchCase> shapes_of(const LinearSettings& settings,
                                 std::int64_t width, int degree) {
  std::vector<BenchCase> shapes;
  const std::int64_t step = settings.quick ? 4 : 2;
  for (std::int64_t n = 64; n <= settings.capped(4096); n *= step) {
    for (const Op op : {Op::kForward, Op::kBackward}) {
      for (const Causal causal : {Causal::kNone, Causal::kFirst}) {
        shapes.push_back({.op = op,
                          .activation = Activation::parse(
                              fmt::format("x^{}/sqrt(N)", degree)),
                          .n = n,
                          .m = n,
                          .d = width,
                          .e = width,
                          .causal = causal,
                          .threads = settings.threads,
                          .path = Path::kAuto});
      }
    }
  }
  return shapes;
}

// The row of all shapes that the report has with this number of threads.
Row summary(const Report& report, const LinearSettings& settings,
            int left_out) {
  int shapes = 0, bad = 0;
  double worst = 1;
  for (const PlannerRow& row : report.planner) {
    if (row.shape.threads != settings.threads) continue;
    ++shapes;
    if (row.loss > kGoodLoss) ++bad;
    worst = std::max(worst, row.loss);
  }
  Row row{.name = fmt::format("planner, worst of {} shapes", shapes),
          .threads = settings.threads,
          .baseline_name = "the better path",
          .measure = Measure::kTimeRatio,
          .value = exactly(worst)};
  row.goal = settings.goal_at(4096, {Bound::kAtMost, kGoodLoss});
  row.note = fmt::format("{} above {:.2f}; {} left out, linear over {} s", bad,
                         kGoodLoss, left_out, kMostSeconds);
  if (const char* wish = std::getenv("POLYATTN_PLAN")) {
    row.note += fmt::format("; POLYATTN_PLAN={}", wish);
  }
  return row;
}

}  // namespace

std::vector<Task> linear_planner_tasks(const LinearSettings& settings) {
  std::vector<Task> tasks;
  const auto left_out = std::make_shared<int>(0);
  for (const std::int64_t width : {16, 32, 64}) {
    for (const int degree : {1, 2, 3}) {
      tasks.push_back({fmt::format("planner, D={} degree {}", width, degree), 5,
                       [=](Report& report) {
                         for (const BenchCase& c :
                              shapes_of(settings, width, degree)) {
                           if (const auto row = try_shape(c, settings)) {
                             report.planner.push_back(*row);
                           } else {
                             ++*left_out;
                           }
                         }
                       }});
    }
  }
  tasks.push_back({"planner", 0.1, [=](Report& report) {
                     report.rows.push_back(
                         summary(report, settings, *left_out));
                   }});
  return tasks;
}

}  // namespace polyattn::bench
