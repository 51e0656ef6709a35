// Pseudo-inverses of the small square matrices of Nystrom attention.
#pragma once

#include <torch/types.h>

#include "polyattn/nn/nystrom_attention.h"

namespace polyattn::nn {

// Of a [B, H, m, m], f32 or f64.
//
// The iteration acts on each singular value s of A by itself. From
// Z = A^T / c, t = s^2 / c goes to t (13 - t (15 - t (7 - t))) / 4 in each
// step, which tends to 1 for 0 < t < 3, cubically near 1, and multiplies a
// small t by 13/4. With c = |A|_1 |A|_inf, at least the square of the largest
// s, t begins in [0, 1], for any matrix, of any size, sign and rank. Six steps
// multiply by 1178 at most: singular values below about sqrt(c) / 34 are
// damped, not inverted. More steps invert smaller ones, and rounding errors in
// the end.
torch::Tensor pseudo_inverse(const torch::Tensor& a,
                             const NystromOptions& options);

}  // namespace polyattn::nn
