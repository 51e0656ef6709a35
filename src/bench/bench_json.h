// The bench's results for machines.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "bench/measurement.h"

namespace polyattn::bench {

// A list with one object for each figure; what was not measured is null.
// Times are in milliseconds; x_q1 and x_q3 are the quartiles of x.
nlohmann::ordered_json bench_json(const std::vector<Measurement>& measurements);

}  // namespace polyattn::bench
