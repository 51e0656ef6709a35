// How fast a norm grows with the number of tokens: the slope of a line through
// log norm against log N.
#pragma once

#include <span>

#include "theory/summary.h"

namespace polyattn::theory {

struct LengthNorm {
  double tokens = 0;          // N
  double norm = 0;            // measured
  double relative_error = 0;  // its standard error over itself, above 0
  double expected = 1;        // what theory says; 1 where it says nothing
};

struct Exponent {
  double slope = 0;     // of the measured norms
  double expected = 0;  // of the expected ones, with the same weights
  // The standard error of the slope: from the errors of the norms, or from the
  // scatter of measured/expected about its line where that is larger. A curve
  // that theory knows of does not count as scatter.
  double error = 0;
  int degrees_of_freedom = 0;  // lengths - 2
};

// Least squares, each norm weighed by its error. Throws std::invalid_argument
// for fewer than two different lengths, or a norm or error that is not above 0.
Exponent fit_exponent(std::span<const LengthNorm> norms);

// By Student's t, or the normal distribution where two lengths leave no
// scatter.
Interval exponent_interval(const Exponent& exponent, double tail);

}  // namespace polyattn::theory
