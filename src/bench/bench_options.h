// From the options of `polyattn bench` to the figures to measure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/bench_cases.h"
#include "bench/bench_run.h"

namespace polyattn::bench {

struct BenchOptions {
  bool quick = false;
  // True if any of the options down to `path` was given: measure their grid
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

  bool calibrate = false;
  bool linear = false;
  std::optional<std::int64_t> longest;  // with linear: shorten what is longer
  bool torch = false;
  bool train = false;
  std::vector<std::string> capabilities;  // empty: default_capabilities()
  std::string only;  // with torch or train: rows whose name contains this

  std::vector<int> threads;  // empty: one and, where there is a core, two
  std::optional<int> repeats;
  std::optional<double> min_time;
  std::uint64_t seed = 1;
  std::optional<std::string> json;  // a path, or "-" for standard output
};

// Throw UsageError for an unknown name.
Op parse_op(const std::string& name);
DType parse_dtype(const std::string& name);
Causal parse_causal(const std::string& name);
Path parse_path(const std::string& name);

std::vector<int> thread_counts(const BenchOptions& options,
                               int hardware_threads);

// Throws UsageError or FormulaError. memory_bytes: what the machine has, 0 if
// unknown; a case that needs more is an error.
std::vector<Figure> select_figures(const BenchOptions& options,
                                   int hardware_threads, double memory_bytes);

RunOptions run_options(const BenchOptions& options);

}  // namespace polyattn::bench
