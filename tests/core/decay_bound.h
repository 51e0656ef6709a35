// How far the gradient of log_decay may be from the reference.
//
// It is, for key t, a sum over rows and keys from t on
//
//   sum_(i >= t) o_i . do_i - sum_(j >= t) v_j . dv_j + 2 (n_t - 1) h_t
//   h_t = sum_(i >= t) fade_it^2 (o_i . do_i) (slope of the divisor by n_i)
//
// (docs/linear.md), so it is off by what o and dv are off, added up, and by the
// roundings of these sums, which are made in double. `sum` has no first and no
// third term.
#pragma once

#include "core/problem.h"
#include "core/random_inputs.h"

namespace polyattn::test {

struct DecayBoundInputs {
  const Problem& problem;
  const ConstTensor& d_o;
  const Outputs& want;
  // Of the gradients by the values, before they are stored, and by the column
  // of ones that `sum` has.
  const ConstTensor& dv_error;
  double u;     // of the compute type
  double lost;  // by underflow, for an element of dv
  DType storage;
};

// Into bound.d_log_decay; bound.o is there.
void bound_decay(const DecayBoundInputs& in, Outputs& bound);

// The sum of the sizes of the finite logarithms of a key head, the largest.
double sum_of_logs(const Problem& problem);

}  // namespace polyattn::test
