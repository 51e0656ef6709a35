#include "bench/bench_torch.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/process.h"
#include "base/program.h"
#include "bench/torch_duels.h"
#include "bench/train_duels.h"

namespace polyattn::bench {
namespace {

std::vector<DuelRow> measure_here(const BenchOptions& options,
                                  base::ProgressStyle style) {
  const std::vector<int> threads =
      thread_counts(options, base::hardware_threads());
  const RunOptions run = run_options(options);
  auto duels =
      options.train ? train_duels(options.quick) : torch_duels(options.quick);
  std::erase_if(duels, [&](const TorchDuel& duel) {
    return duel.name.find(options.only) == std::string::npos;
  });
  if (duels.empty()) {
    throw base::UsageError(
        fmt::format("--only {}: no row has this in its name", options.only));
  }
  double total = 0;
  for (const TorchDuel& duel : duels) {
    for (const int count : threads) total += duel.effort / count;
  }
  base::Progress progress(
      style, static_cast<int>(duels.size() * threads.size()), total);
  std::vector<DuelRow> rows;
  for (const TorchDuel& duel : duels) {
    for (const int count : threads) {
      progress.step(fmt::format("{}, threads: {}", duel.name, count),
                    duel.effort / count);
      rows.push_back(run_torch_duel(duel, count, {run.rounds, run.min_seconds},
                                    options.seed));
      rows.back().mode = torch_capability();
    }
  }
  return rows;
}

// The same in a process in which libtorch starts in another mode.
std::vector<DuelRow> measure_elsewhere(const BenchOptions& options,
                                       const std::string& capability) {
  std::vector<std::string> arguments{"bench",
                                     options.train ? "--train" : "--torch",
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
  return duel_rows(nlohmann::ordered_json::parse(text));
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

std::vector<DuelRow> bench_torch(const BenchOptions& options,
                                 base::ProgressStyle style) {
  std::vector<DuelRow> best;
  const auto capabilities = options.capabilities.empty()
                                ? default_capabilities()
                                : options.capabilities;
  for (const std::string& capability : capabilities) {
    const auto rows = capability == "default"
                          ? measure_here(options, style)
                          : measure_elsewhere(options, capability);
    best = best.empty() ? rows : better_rivals(best, rows);
  }
  return best;
}

}  // namespace polyattn::bench
