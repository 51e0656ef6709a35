#include "bench/torch_bench.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/process.h"
#include "base/program.h"
#include "bench/derivative_comparisons.h"
#include "bench/step_growth.h"
#include "bench/torch_comparisons.h"
#include "bench/train_comparisons.h"

namespace polyattn::bench {
namespace {

std::vector<Comparison> comparisons_of(const std::string& name, bool quick) {
  if (name == "train") return train_comparisons(quick);
  if (name == "derivatives") return derivative_comparisons(quick);
  return torch_comparisons(quick);
}

Report measure_here(const std::string& name, const Options& options,
                    base::ProgressStyle style) {
  auto comparisons = comparisons_of(name, options.quick);
  std::erase_if(comparisons, [&](const Comparison& comparison) {
    return comparison.name.find(options.only) == std::string::npos;
  });
  std::vector<Task> tasks;
  for (const Comparison& comparison : comparisons) {
    for (const int count : thread_counts(options, base::hardware_threads())) {
      tasks.push_back({fmt::format("{}, threads: {}", comparison.name, count),
                       comparison.effort / count,
                       [=, &options](Report& report) {
                         report.rows.push_back(run_comparison(
                             comparison, count, run_options(options)));
                       }});
    }
  }
  if (name == "train") {
    for (const int count : thread_counts(options, base::hardware_threads())) {
      const auto more = step_growth_tasks(count, run_options(options),
                                          options.quick, options.only);
      tasks.insert(tasks.end(), more.begin(), more.end());
    }
  }
  if (tasks.empty()) {
    throw base::UsageError(
        fmt::format("--only {}: no row has this in its name", options.only));
  }
  return run_tasks(tasks, style);
}

// The same in a process in which libtorch starts in another mode.
std::vector<Row> measure_elsewhere(const std::string& name,
                                   const Options& options,
                                   const std::string& capability) {
  std::vector<std::string> arguments{"bench",
                                     name,
                                     "--json",
                                     "--capability",
                                     "default",
                                     "--seed",
                                     std::to_string(options.seed),
                                     "--only",
                                     options.only};
  if (options.quick) arguments.emplace_back("--quick");
  for (const int count : options.threads) {
    arguments.insert(arguments.end(), {"--threads", std::to_string(count)});
  }
  if (options.repeats) {
    arguments.insert(arguments.end(),
                     {"--repeats", std::to_string(*options.repeats)});
  }
  if (options.min_time) {
    arguments.insert(arguments.end(),
                     {"--min-time", fmt::format("{}", *options.min_time)});
  }
  const std::string text =
      base::output_of_self(arguments, {"ATEN_CPU_CAPABILITY", capability});
  return rows_of(nlohmann::ordered_json::parse(text));
}

}  // namespace

std::vector<std::string> default_capabilities() {
#if defined(__x86_64__)
  // libtorch takes the variable at its word and would die of SIGILL.
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    return {"default", "avx512"};
  }
#endif
  return {"default"};
}

Report bench_torch(const std::string& name, const Options& options,
                   base::ProgressStyle style) {
  Report best;
  const auto capabilities = options.capabilities.empty()
                                ? default_capabilities()
                                : options.capabilities;
  for (const std::string& capability : capabilities) {
    const auto rows = capability == "default"
                          ? measure_here(name, options, style).rows
                          : measure_elsewhere(name, options, capability);
    best.rows = best.rows.empty() ? rows : better_baselines(best.rows, rows);
  }
  return best;
}

}  // namespace polyattn::bench
