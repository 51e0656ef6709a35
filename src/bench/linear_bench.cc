#include "bench/linear_bench.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/program.h"
#include "bench/bench_torch.h"

namespace polyattn::bench {
namespace {

// The row of `bench --torch` that belongs here too.
constexpr std::int64_t kTorchLength = 16384;
constexpr const char* kTorchRow = "forward x/sqrt(N) [1,1,16384,64]";

LinearRow torch_row(const BenchOptions& options, int threads) {
  LinearRow row;
  row.name = kTorchRow;
  row.threads = threads;
  row.unit = "ms";
  row.rival_name = "libtorch, eager softmax";
  row.goal = Goal{Bound::kAtLeast, 200};
  if (options.longest && *options.longest < kTorchLength) {
    row.goal.reset();
    row.note = fmt::format("longer than --longest {}", *options.longest);
    return row;
  }
  if (default_capabilities().empty()) {
    row.note = "built without torch";
    return row;
  }
  BenchOptions torch = options;
  torch.linear = false;
  torch.torch = true;
  torch.quick = false;
  torch.only = kTorchRow;
  torch.threads = {threads};
  torch.repeats = options.repeats.value_or(3);  // the rival takes seconds
  const auto duels = bench_torch(torch, base::ProgressStyle::kNone);
  const DuelRow& duel = duels.at(0);
  row.ours = duel.ours.median;
  row.rival = duel.theirs.median;
  row.value = duel.ratio;
  row.note = "mode " + duel.mode;
  return row;
}

std::vector<LinearTask> tasks_of(const BenchOptions& options, int threads) {
  const LinearSettings settings = linear_settings(options, threads);
  std::vector<LinearTask> tasks = linear_speed_tasks(settings);
  const auto add = [&](const std::vector<LinearTask>& more) {
    tasks.insert(tasks.end(), more.begin(), more.end());
  };
  add({{kTorchRow, 15, [=](LinearReport& report) {
          report.rows.push_back(torch_row(options, threads));
        }}});
  add(linear_decode_tasks(settings));
  add(linear_accuracy_tasks(settings));
  add(linear_planner_tasks(settings));
  return tasks;
}

}  // namespace

std::int64_t LinearSettings::capped(std::int64_t length) const {
  return std::min(length, longest);
}

std::optional<Goal> LinearSettings::goal_at(std::int64_t length,
                                            Goal goal) const {
  return length <= longest ? std::optional(goal) : std::nullopt;
}

LinearSettings linear_settings(const BenchOptions& options, int threads) {
  constexpr std::int64_t kQuickLongest = 16384;
  const RunOptions run = run_options(options);
  LinearSettings settings;
  settings.threads = threads;
  settings.quick = options.quick;
  settings.seed = run.seed;
  // A call of the dense rival takes most of a second: fewer rounds.
  settings.rounds = {options.repeats.value_or(options.quick ? 3 : 5),
                     run.min_seconds};
  if (options.quick) settings.longest = kQuickLongest;
  if (options.longest) settings.longest = *options.longest;
  settings.sgemm_size = settings.capped(run.sgemm_size);
  return settings;
}

LinearReport bench_linear(const BenchOptions& options,
                          base::ProgressStyle style) {
  const std::vector<int> threads =
      options.threads.empty()
          ? std::vector{1}
          : thread_counts(options, base::hardware_threads());
  std::vector<LinearTask> tasks;
  double total = 0;
  for (const int count : threads) {
    for (const LinearTask& task : tasks_of(options, count)) {
      tasks.push_back(task);
      tasks.back().name += fmt::format(", threads: {}", count);
      total += task.effort;
    }
  }
  base::Progress progress(style, static_cast<int>(tasks.size()), total);
  LinearReport report;
  for (const LinearTask& task : tasks) {
    progress.step(task.name, task.effort);
    task.run(report);
  }
  return report;
}

}  // namespace polyattn::bench
