// Statistics of a few values.
#pragma once

#include <cstdint>
#include <vector>

namespace polyattn::base {

struct Sample {
  double mean = 0;
  double deviation = 0;  // with n - 1; 0 for a single value
  int count = 0;
};

Sample sample_of(const std::vector<double>& values);

// The two-sided quantile of Student's t: P(|T| <= t) = confidence. Throws
// std::invalid_argument unless 0 < confidence < 1 and there is a degree of
// freedom.
double student_t(double confidence, int degrees_of_freedom);

// Half the width of the 95 % interval (Wilson's) of a share of which `count`
// examples gave this estimate: how far chance in the choice of test examples
// alone may have moved it.
double sampling_error(double share, std::int64_t count);

// Median and quartiles of a few measurements.
struct Spread {
  double median = 0;
  double q1 = 0;
  double q3 = 0;
};

// Interpolates linearly between order statistics (R's type 7).
// Throws std::invalid_argument if there are no values.
Spread spread_of(std::vector<double> values);

}  // namespace polyattn::base
