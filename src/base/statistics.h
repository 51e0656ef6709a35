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

// The same for the largest of several: P(|T_1|, ..., |T_count| <= t) =
// confidence for independent normal values over one estimate of their
// deviation (the studentised maximum modulus). For correlated values the
// probability is larger (Sidak). Any number of degrees of freedom, infinity
// for a deviation that is known. Throws as student_t, and for no values.
double maximum_modulus(double confidence, int count, double degrees_of_freedom);

// P(F > ratio) of the ratio of two estimates of one variance.
double variance_ratio_tail(double ratio, int degrees_above, int degrees_below);

// Half the width of the 95 % interval (Wilson's) of a share of which `count`
// examples gave this estimate: how far chance in the choice of test examples
// alone may have moved it. For one of several comparisons all of which are to
// hold.
double sampling_error(double share, std::int64_t count, int comparisons);

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
