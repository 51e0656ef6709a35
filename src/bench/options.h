// The options of the benchmarks, and the figures that `bench core` measures.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/cases.h"
#include "bench/measure.h"

namespace polyattn::bench {

// Of time-to-quality.
struct QualityOptions {
  std::string task;
  std::string arms = "softmax,x/N,x^2/N,x^3/N";
  int seeds = 3;
  std::vector<std::string> settings;  // key=value
  std::string out;                    // empty: by the task
  std::int64_t batches = 8;
  bool prepare = false;              // write the steps for PyTorch, no more
  std::vector<std::string> pytorch;  // what it took there
};

// Of every benchmark; each takes those that it has a use for.
struct Options {
  // Of core. True if any of those down to `path` was given: measure their grid
  // instead of the table of goals.
  bool grid = false;
  std::vector<std::string> ops{"forward", "backward"};
  std::vector<std::string> activations{"x^3/sqrt(N)"};
  std::vector<std::string> dtypes{"f32"};
  std::int64_t batch = 1;
  std::int64_t heads = 8;
  std::optional<std::int64_t> kv_heads;  // as many as heads
  std::vector<std::int64_t> lengths{1024};
  std::optional<std::int64_t> keys;  // as many as queries
  std::vector<std::int64_t> widths{64};
  std::optional<std::int64_t> value_width;  // as wide as keys
  std::string causal = "none";
  bool stats = false;
  std::string path = "dense";

  // Of torch, train and linear.
  std::vector<std::string> capabilities;  // empty: default_capabilities()
  // Of core, torch, train and scaling: rows whose name contains this.
  std::string only;
  // Of linear and scaling: shorten what is longer.
  std::optional<std::int64_t> longest;

  QualityOptions quality;

  std::int64_t workers = 0;  // of data; 0: as many as threads

  bool quick = false;
  std::vector<int> threads;  // empty: one and, where there is a core, two
  std::optional<int> repeats;
  std::optional<double> min_time;
  std::uint64_t seed = 1;
  std::optional<std::string> json;  // a path, or "-" for standard output
};

std::vector<int> thread_counts(const Options& options, int hardware_threads);

// Throws UsageError or FormulaError. memory_bytes: what the machine has, 0 if
// unknown; a case that needs more is an error.
std::vector<Figure> select_figures(const Options& options, int hardware_threads,
                                   double memory_bytes);

RunOptions run_options(const Options& options);

}  // namespace polyattn::bench
