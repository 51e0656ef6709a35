// The constant with which c x^p has the Frobenius norm of softmax.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "polyattn/parallel.h"
#include "theory/summary.h"

namespace polyattn::theory {

// A measured value and its 99 % interval.
struct Bounded {
  double value = 0;
  Interval interval = {};
};

struct CalibratedFormula {
  Bounded constant = {};     // c
  std::string formula = {};  // what Activation::parse takes, with c to 4 digits
};

// From any two norms: of softmax, and of x^p (or x^p/sqrt(N), if scaled) on the
// same scores, such as those of a layer of a trained model. Throws
// std::invalid_argument unless they are finite and above 0.
CalibratedFormula calibrate_norms(const Bounded& softmax_norm,
                                  double monomial_norm, int degree,
                                  bool scaled);

struct CalibrateOptions {
  std::int64_t tokens = 0;  // N
  std::int64_t width = 0;   // D
  int degree = 0;           // p
  bool causal = false;
  std::optional<std::int64_t> samples = {};  // matrices; default: by N
  std::uint64_t seed = 1;
};

struct Calibration {
  std::int64_t samples = 0;
  Bounded softmax_norm;     // root mean square of ||softmax(S)||_F
  CalibratedFormula fixed;  // c x^p: its norm grows as N
  CalibratedFormula row;    // k x^p/sqrt(N): as sqrt(N)
};

// For queries and keys with independent N(0, 1) entries: softmax by drawing
// matrices, the polynomial exactly. Throws std::invalid_argument.
Calibration calibrate(const CalibrateOptions& options, Parallel& parallel);

}  // namespace polyattn::theory
