// Rows as a table, and which of them reached their goals.
#pragma once

#include <string>
#include <vector>

#include "bench/row.h"

namespace polyattn::bench {

std::string table_text(const std::vector<Row>& rows, bool colours);

// "All 3 goals are reached.", or which were missed or not measured; empty
// without goals.
std::string verdict(const std::vector<Row>& rows);

// "1.03 (1.02–1.04) × sgemm": what the goal is about, with its quartiles.
std::string format_value(const Row& row);

// "≥ 1.00", or "" without a goal.
std::string format_goal(const Row& row);

// "2 threads"
std::string threads_text(int threads);

}  // namespace polyattn::bench
