// Exact expectations of the squared norms of polynomial attention, for random
// inputs. docs/theory.md derives them.
//
//   A_ij = phi(s_ij) / divisor_i,   s_ij = q_i . k_j / sqrt(D)
//
// Letters: N tokens, D width of a head, C width of the rows of X.
#pragma once

#include <cstdint>

#include "polyattn/activation.h"

namespace polyattn::theory {

// Where queries and keys come from.
enum class Source : std::uint8_t {
  kQueriesKeys,  // entries of Q and K: independent, N(0, 1)
  kProjections,  // Q = X W_Q, K = X W_K: entries of X are N(0, 1), those of
                 // W_Q and W_K N(0, projection_std^2), all independent
};

struct Setting {
  std::int64_t tokens = 0;  // N queries and as many keys
  std::int64_t width = 0;   // D
  bool causal = false;      // row i sees the keys 0 .. i
  Source source = Source::kQueriesKeys;
  // Of kProjections only.
  std::int64_t channels = 0;  // C
  double projection_std = 1;  // finite, not negative
};

// E[(q . k / sqrt(D))^power] for q, k ~ N(0, I_D): zero for odd powers.
// Throws std::invalid_argument for a negative power or a width below 1, and
// std::overflow_error beyond the range of double (from power 172 on at
// D = 1, from 302 on for wide heads).
double score_moment(int power, std::int64_t width);

// E of the squared Frobenius norm of ...
// All throw std::invalid_argument ("[theory] ...") unless the activation is a
// polynomial without /sum and the setting makes sense, and std::overflow_error
// where the result, or a term of it, is beyond the range of double: they never
// return inf or NaN. With coefficients and projection_std near 1, nothing
// overflows for N, D and C up to 1e15 at any degree. The time does not depend
// on the setting.
double expected_weight_sq(const Activation& activation,
                          const Setting& setting);  // A
double expected_jacobian_sq(const Activation& activation,
                            const Setting& setting);  // dA/dS, diagonal
// dA/dQ at fixed K, and dA/dK at fixed Q: of the same size, by symmetry.
double expected_query_gradient_sq(const Activation& activation,
                                  const Setting& setting);  // dA/dQ
double expected_key_gradient_sq(const Activation& activation,
                                const Setting& setting);  // dA/dK
// dA/dX, of kProjections only: X feeds queries and keys.
double expected_input_gradient_sq(const Activation& activation,
                                  const Setting& setting);

}  // namespace polyattn::theory
