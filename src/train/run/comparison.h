// The outcome of several runs side by side: a table, and a verdict that says
// no more than the runs allow.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/statistics.h"
#include "train/run/differences.h"
#include "train/run/records.h"

namespace polyattn::run {

// The figure by which runs are compared.
enum class Figure { kAccuracy, kBitsPerByte, kRelativeL2, kLoss };

const char* name_of(Figure figure);  // accuracy, bits_per_byte, ...

struct ComparisonRow {
  std::string activation;  // fit for a terminal
  std::string variant;     // of it, fit for a terminal; empty: none
  std::string setting;     // that was chosen for it, if there was a search
  // With finite results. Those without count as diverged.
  int finished = 0;
  int diverged = 0;
  int other = 0;             // running, interrupted, or never evaluated
  base::Sample figure;       // over the finished runs
  SeedFigures by_seed = {};  // means of the finished
  base::Sample loss;
  base::Sample relative_l1;  // of those that have it
  double train_seconds = 0;  // mean of the finished runs
  double peak_mb = 0;        // largest
  // Largest of all runs; those that diverged may make it inf or nan.
  double max_weight_norm = 0;
  double max_jacobian_norm = 0;
  // To the baseline, and the means of the two over the seeds that have both.
  Difference difference;
  double paired_mean = 0;
  double baseline_mean = 0;

  std::string name() const { return arm_name(activation, variant); }
};

struct Comparison {
  std::string task;
  Figure figure = Figure::kAccuracy;
  double tokens = 0;  // N
  std::int64_t test_count = 0;
  bool validation = false;          // evaluated on validation data, all of them
  std::vector<ComparisonRow> rows;  // in the order of their first run
  // The row that the others are compared with: softmax without a variant, or
  // else the first.
  std::size_t baseline = 0;
  IntervalBasis basis;  // of the differences to it
  // In what the runs differ though they should not, a sentence each.
  std::vector<std::string> cautions;
};

// Runs of one task. Throws std::invalid_argument if there are none or they mix
// tasks.
Comparison compare_runs(const std::vector<RunInfo>& runs);

// Of all rows to one of them, with intervals that hold all at once.
Differences differences_to(const Comparison& comparison, std::size_t reference);

// A few sentences: the best of the others against the baseline, the rest in
// short, and what speaks against the figures.
std::string verdict(const Comparison& comparison);

// For a terminal (aligned columns), and for a file (Markdown: the verdict, the
// table and what its columns mean, without a heading).
std::string comparison_table(const Comparison& comparison);
std::string comparison_markdown(const Comparison& comparison);
base::Json comparison_json(const Comparison& comparison);

}  // namespace polyattn::run
