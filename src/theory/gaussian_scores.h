// The expected norm of A for scores that are independent and normal: what every
// activation has a number for, softmax included. docs/theory.md derives it.
#pragma once

#include <cstdint>

#include "polyattn/activation.h"

namespace polyattn::theory {

// The range in which the quadrature has 9 digits and takes 10 ms at most (0.1
// ms for scores of size 1).
inline constexpr std::int64_t kMostGaussianTokens = 1'000'000;
inline constexpr double kMostScoreStd = 16;

// E||A||_F^2 of full attention, N rows of N keys, with scores
// N(0, score_std^2). Polynomials and powers of relu by their moments, sigmoid
// and softmax by quadrature. Throws std::invalid_argument for another formula
// that ends in /sum, and std::overflow_error as expected_weight_sq does.
double gaussian_weight_sq(const Activation& activation, std::int64_t tokens,
                          double score_std);

}  // namespace polyattn::theory
