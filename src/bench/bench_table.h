// The bench's results for people.
#pragma once

#include <string>
#include <vector>

#include "bench/measurement.h"

namespace polyattn::bench {

struct TableStyle {
  bool colours = false;
  std::string machine;  // the first line
};

// Machine, sgemm rates, the table, and the figures that missed their goal.
std::string bench_table(const std::vector<Measurement>& measurements,
                        const TableStyle& style);

// "1.03 (1.02–1.04) × sgemm": the number of a figure with its quartiles.
std::string format_value(const Measurement& measurement);

// "≥ 1.00", or "" without a goal.
std::string format_goal(const Figure& figure);

}  // namespace polyattn::bench
