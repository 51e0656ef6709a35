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

using Json = nlohmann::ordered_json;

struct PathTimes {
  double dense_ms = 0, linear_ms = 0;
  double ratio = 1;  // dense over linear, formed inside a round
};

// Where the chosen path is twice as fast, a look is enough; what looks like a
// wrong choice may be another program that had the core.
PathTimes time_paths(BenchCase c, Path chosen, const LinearSettings& settings) {
  c.path = Path::kDense;
  CaseRunner dense(c, settings.run.seed);
  c.path = Path::kLinear;
  CaseRunner linear(c, settings.run.seed);
  const double least = std::min(settings.run.rounds.min_seconds, 0.004);
  const auto look_at = [&](CaseRunner& runner) {
    return Timed([&] { runner.run(); }, least / 2).milliseconds_per_call();
  };
  const double dense_ms = look_at(dense), linear_ms = look_at(linear);
  const double look = dense_ms / linear_ms;
  if (chosen == Path::kLinear ? look > 2 : look < 0.5) {
    return {dense_ms, linear_ms, look};
  }
  Row pair;
  summarise(take_turns({[&] { linear.run(); }, [&] { dense.run(); }},
                       {settings.run.rounds.rounds + 2, least}),
            pair);
  return {pair.baseline->median, pair.ours->median, pair.value->median};
}

// Null for a shape that is left out.
Json try_shape(const BenchCase& c, const LinearSettings& settings) {
  const Direction direction =
      c.op == Op::kForward ? Direction::kForward : Direction::kBackward;
  const PathEstimate e = estimate_paths(shape_of(c), config_of(c), direction);
  if (e.linear_seconds > kMostSeconds) return {};
  const auto [dense_ms, linear_ms, ratio] = time_paths(c, e.path, settings);
  // Time of the chosen path over that of the better one.
  const double loss =
      std::max(1.0, e.path == Path::kLinear ? 1 / ratio : ratio);
  return {{"op", name_of(c.op)},
          {"activation", c.activation.to_string()},
          {"N", c.n},
          {"D", c.d},
          {"causal", name_of(c.causal)},
          {"threads", c.threads},
          {"chosen", name_of(e.path)},
          {"dense_ms", dense_ms},
          {"linear_ms", linear_ms},
          {"predicted_dense_ms", e.dense_seconds * 1e3},
          {"predicted_linear_ms", e.linear_seconds * 1e3},
          {"loss", loss}};
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
  for (const Json& row : report.planner) {
    if (row.at("threads") != settings.threads) continue;
    const double loss = row.at("loss");
    ++shapes;
    if (loss > kGoodLoss) ++bad;
    worst = std::max(worst, loss);
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
                           const Json row = try_shape(c, settings);
                           if (row.is_null()) {
                             ++*left_out;
                           } else {
                             report.planner.push_back(row);
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
