// What decay does to the rows of a causal call, apart from the sums over keys.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/problem.h"

namespace polyattn {

// Throws std::invalid_argument where log_decay is NaN or above 0.
void check_decay_values(const char* op, const Problem& problem);

// log_decay of key j of the sequence and key head g.
double log_decay_at(const Problem& problem, const Sequence& sequence,
                    std::int64_t g, std::int64_t j);

// N of a row from that of the row before, whose keys it sees and one more.
inline double next_n(double n, double log_decay) {
  return log_decay == 0 ? n + 1 : n * std::exp(2 * log_decay) + 1;
}

// Of key head g of sequence b: the factor of each key, 1 where the mask removes
// it, and the N of a row whose last key it is.
void find_decay(const Problem& problem, std::int64_t b, std::int64_t g,
                double* factor, double* n);

// What the gradient is made of, for the keys of a head and a sequence; row_pull
// is that of all rows.
struct DecayPulls {
  const double* factor;    // [M]
  const double* n;         // [M]
  const double* row_pull;  // [B, H, N]: o . do
  double* pull;            // [M]: v . dv in, gradient of log factor out
};
void find_decay_gradient(const Problem& problem, std::int64_t b, std::int64_t g,
                         const DecayPulls& pulls);

// Adds gradient [B, G, M] up to the shape of log_decay; returns how many of the
// values written are inf or NaN.
std::int64_t store_decay_gradient(const Problem& problem,
                                  const double* gradient, const Tensor& to);

// d(row_scale(n))/dn over row_scale(n): with it, a row's gradient by its n is
// that of its output times the output.
double row_scale_slope(const Activation& activation, double n);

}  // namespace polyattn
