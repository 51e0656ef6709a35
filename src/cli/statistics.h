// Median and quartiles of a few measurements.
#pragma once

#include <vector>

namespace polyattn::cli {

struct Spread {
  double median = 0;
  double q1 = 0;
  double q3 = 0;
};

// Interpolates linearly between order statistics (R's type 7).
// Throws std::invalid_argument if there are no values.
Spread spread_of(std::vector<double> values);

}  // namespace polyattn::cli
