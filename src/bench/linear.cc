#include "bench/linear.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/program.h"
#include "bench/torch_bench.h"

namespace polyattn::bench {
namespace {

// The row of `bench torch` that belongs here too.
constexpr std::int64_t kTorchLength = 16384;
constexpr const char* kTorchRow = "forward x/sqrt(N) [1,1,16384,64]";

Row torch_row(Options options, int threads) {
  Row row{.name = kTorchRow, .threads = threads};
  if (options.longest && *options.longest < kTorchLength) {
    row.note = fmt::format("longer than --longest {}", *options.longest);
  } else if (default_capabilities().empty()) {
    row.goal = Goal{Bound::kAtLeast, 200};
    row.note = "built without torch";
  } else {
    options.quick = false;
    options.only = kTorchRow;
    options.threads = {threads};
    options.repeats = options.repeats.value_or(3);  // a call takes seconds
    row = bench_torch("torch", options, base::ProgressStyle::kNone).rows.at(0);
  }
  row.baseline_name = "libtorch, eager softmax";
  return row;
}

std::vector<Task> tasks_of(const Options& options, int threads) {
  const LinearSettings settings = linear_settings(options, threads);
  std::vector<Task> tasks = linear_speed_tasks(settings);
  const auto add = [&](const std::vector<Task>& more) {
    tasks.insert(tasks.end(), more.begin(), more.end());
  };
  add({{kTorchRow, 15, [=](Report& report) {
          report.rows.push_back(torch_row(options, threads));
        }}});
  add(linear_decay_tasks(settings));
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

LinearSettings linear_settings(const Options& options, int threads) {
  constexpr std::int64_t kQuickLongest = 16384;
  const RunOptions run = run_options(options);
  LinearSettings settings;
  settings.threads = threads;
  settings.quick = options.quick;
  settings.run = run;
  // A call of the dense baseline takes most of a second: fewer rounds.
  settings.run.rounds.rounds = options.repeats.value_or(options.quick ? 3 : 5);
  settings.run.rounds.clock = clock_for(threads);
  if (options.quick) settings.longest = kQuickLongest;
  if (options.longest) settings.longest = *options.longest;
  settings.run.sgemm_size = settings.capped(run.sgemm_size);
  return settings;
}

std::vector<Task> linear_tasks(const Options& options) {
  const std::vector<int> threads =
      options.threads.empty()
          ? std::vector{1}
          : thread_counts(options, base::hardware_threads());
  std::vector<Task> tasks;
  for (const int count : threads) {
    for (const Task& task : tasks_of(options, count)) {
      if (task.name.find(options.only) == std::string::npos) continue;
      tasks.push_back(task);
      tasks.back().name += fmt::format(", threads: {}", count);
    }
  }
  if (tasks.empty())
    throw base::UsageError(
        fmt::format("--only {}: no row has this in its name", options.only));
  return tasks;
}

}  // namespace polyattn::bench
