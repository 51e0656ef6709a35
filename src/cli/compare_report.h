// What a comparison leaves behind and prints, for compare and experiment.
#pragma once

#include <filesystem>
#include <optional>

#include "train/compare_run.h"
#include "train/run/comparison.h"

namespace polyattn::cli {

// On standard error: the longest wait, and what it is for.
void announce_search(const train::ComparePlan& plan);

// What the search chose.
void print_search(const run::GridOutcome& search);

// On standard error, after StopSignals said stop. The exit code.
int tell_interrupted();

struct ComparisonReport {
  run::Comparison comparison;
  base::Json json;             // comparison.json, and where the page is
  std::filesystem::path page;  // report.md where there is no page
};

// Writes report.md, comparison.json and the page into the folder of the plan.
// There are runs.
ComparisonReport write_comparison(const train::ComparePlan& plan,
                                  const train::CompareOutcome& outcome);

// The table, the verdict, and where to see more.
void print_comparison(const ComparisonReport& report);

}  // namespace polyattn::cli
