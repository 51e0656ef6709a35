// The outcome of several runs side by side: a table, and a verdict that says
// no more than the runs allow.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/statistics.h"
#include "train/run/records.h"

namespace polyattn::run {

// The figure by which runs are compared.
enum class Figure { kAccuracy, kBitsPerByte, kLoss };

struct ComparisonRow {
  std::string activation;  // fit for a terminal
  // With finite results. Those without count as diverged.
  int finished = 0;
  int diverged = 0;
  int other = 0;        // running, interrupted, or never evaluated
  base::Sample figure;  // over the finished runs
  std::map<std::int64_t, double> by_seed = {};  // means of the finished
  base::Sample loss;
  double train_seconds = 0;  // mean of the finished runs
  double peak_mb = 0;        // largest
  // Largest of all runs; those that diverged may make it inf or nan.
  double max_weight_norm = 0;
  double max_jacobian_norm = 0;
  // Against the baseline, over the seeds that have both: the means of the two,
  // their difference, and for two seeds or more half its 95 % interval.
  int pairs = 0;
  double paired_mean = 0;
  double baseline_mean = 0;
  double difference = 0;
  double half_width = 0;
};

// Of the figures of two rows, over the seeds that have both: the mean, and for
// two seeds or more half its 95 % interval.
struct PairedDifference {
  int pairs = 0;
  double difference = 0;
  double half_width = 0;
};

PairedDifference paired_difference(const ComparisonRow& row,
                                   const ComparisonRow& other);

struct Comparison {
  std::string task;
  Figure figure = Figure::kAccuracy;
  double tokens = 0;  // N
  std::int64_t test_count = 0;
  std::vector<ComparisonRow> rows;  // in the order of their first run
  // The row that the others are compared with: softmax, or else the first.
  std::size_t baseline = 0;
  // In what the runs differ though they should not, a sentence each.
  std::vector<std::string> cautions;
};

// Runs of one task. Throws std::invalid_argument if there are none or they mix
// tasks.
Comparison compare_runs(const std::vector<RunInfo>& runs);

// A few sentences: the best of the others against the baseline, the rest in
// short, and what speaks against the figures.
std::string verdict(const Comparison& comparison);

// For a terminal (aligned columns), and for a file (Markdown: the verdict, the
// table and what its columns mean, without a heading).
std::string comparison_table(const Comparison& comparison);
std::string comparison_markdown(const Comparison& comparison);
base::Json comparison_json(const Comparison& comparison);

}  // namespace polyattn::run
