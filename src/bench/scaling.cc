#include "bench/scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/program.h"
#include "base/progress.h"
#include "base/text_table.h"
#include "bench/inputs.h"
#include "bench/schedule.h"
#include "bench/timed.h"

namespace polyattn::bench {
namespace {

std::string name_of(const BenchCase& c) {
  return fmt::format("{} {} [{},{},{},{}]{}{}", bench::name_of(c.op),
                     c.activation.to_string(), c.b, c.h, c.n, c.d,
                     c.causal == Causal::kNone ? "" : " causal",
                     c.path == Path::kLinear ? " linear" : "");
}

ScalingRow measure(const ScalingCase& c, const Options& options) {
  CaseRunner runner(c.shape, options.seed);
  TimingParallel parallel;
  const int repeats = options.repeats.value_or(options.quick ? 1 : 3);
  double serial = 1e300;
  for (int i = 0; i < repeats; ++i) {
    if (i > 0) parallel.begin_call();
    const double call =
        seconds_of([&] { runner.run(parallel); }, 1, Clock::kThread);
    serial = std::min(serial, std::max(call - parallel.inside(), 0.0));
  }
  const CallTimes call{parallel.runs(), serial};
  ScalingRow row{
      .name = name_of(c.shape), .seconds = call.work(), .goal = c.goal};
  for (const TaskTimes& run : call.runs) {
    row.runs += run.size() > 1 ? 1 : 0;
    row.tasks += static_cast<std::int64_t>(run.size());
  }
  for (const int workers : kScalingWorkers)
    row.bounds.push_back(schedule_bound(call, workers, kBarrierSeconds));
  return row;
}

}  // namespace

std::vector<ScalingCase> scaling_cases() {
  std::vector<ScalingCase> cases;
  const auto add = [&](BenchCase c, std::int64_t batch, std::int64_t heads,
                       std::int64_t length) {
    c.b = batch;
    c.h = c.g = heads;
    c.n = c.m = length;
    c.d = c.e = 64;
    for (const Op op : {Op::kForward, Op::kBackward}) {
      c.op = op;
      const bool forward = op == Op::kForward && c.path != Path::kLinear;
      cases.push_back({c, forward ? 0.9 : 0.85});
    }
  };
  const BenchCase cubic{.activation = Activation::parse("x^3/sqrt(N)")};
  add(cubic, 1, 16, 4096);
  add(cubic, 1, 1, 16384);
  add(cubic, 16, 12, 197);
  BenchCase square{.activation = Activation::parse("x^2/sqrt(N)"),
                   .path = Path::kLinear};
  add(square, 1, 8, 65536);
  square.causal = Causal::kFirst;
  add(square, 1, 8, 65536);
  return cases;
}

double bound_at(const ScalingRow& row, int workers) {
  const auto* at = std::find(std::begin(kScalingWorkers),
                             std::end(kScalingWorkers), workers);
  return row.bounds.at(
      static_cast<std::size_t>(std::distance(std::begin(kScalingWorkers), at)));
}

std::vector<ScalingRow> bench_scaling(const Options& options) {
  std::vector<ScalingCase> cases = scaling_cases();
  std::erase_if(cases, [&](const ScalingCase& c) {
    return name_of(c.shape).find(options.only) == std::string::npos;
  });
  if (cases.empty())
    throw base::UsageError(
        fmt::format("--only {}: no row has this in its name", options.only));
  std::vector<ScalingRow> rows;
  for (ScalingCase& c : cases) {
    if (options.longest && c.shape.n > *options.longest) {
      c.shape.n = c.shape.m = *options.longest;
      c.goal = 0;
    }
    rows.push_back(measure(c, options));
  }
  return rows;
}

std::string scaling_text(const std::vector<ScalingRow>& rows) {
  std::vector<base::Column> columns{
      {"call", base::Align::kLeft}, {"runs"}, {"tasks"}, {"ms"}};
  for (const int workers : kScalingWorkers)
    columns.push_back({std::to_string(workers)});
  columns.push_back({"goal"});
  base::TextTable table(columns);
  for (const ScalingRow& row : rows) {
    std::vector<std::string> cells{row.name, std::to_string(row.runs),
                                   std::to_string(row.tasks),
                                   fmt::format("{:.1f}", row.seconds * 1e3)};
    for (const double bound : row.bounds)
      cells.push_back(fmt::format("{:.2f}", bound));
    cells.push_back(row.goal == 0
                        ? ""
                        : fmt::format("{:.2f} {}", row.goal,
                                      bound_at(row, kGoalWorkers) >= row.goal
                                          ? "reached"
                                          : "missed"));
    table.add_row(cells);
  }
  return fmt::format(
      "Schedule bound by the number of workers: the part of their speed that "
      "the cut into\ntasks leaves, with {:.0f} us for the end of a run. Tasks "
      "were timed on one core; what\nworkers take from each other in caches "
      "and memory is not in it. The goal is for {}.\n\n{}",
      kBarrierSeconds * 1e6, kGoalWorkers, table.to_string());
}

nlohmann::ordered_json scaling_json(const std::vector<ScalingRow>& rows) {
  nlohmann::ordered_json json = {{"barrier_seconds", kBarrierSeconds},
                                 {"workers", kScalingWorkers},
                                 {"goal_workers", kGoalWorkers},
                                 {"rows", nlohmann::ordered_json::array()}};
  for (const ScalingRow& row : rows) {
    nlohmann::ordered_json entry = {{"name", row.name},
                                    {"runs", row.runs},
                                    {"tasks", row.tasks},
                                    {"seconds", row.seconds},
                                    {"schedule_bounds", row.bounds}};
    if (row.goal > 0) entry["goal"] = row.goal;
    json["rows"].push_back(entry);
  }
  return json;
}

}  // namespace polyattn::bench
