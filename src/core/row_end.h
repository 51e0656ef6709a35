// What a row of attention ends with, once all its keys have been seen.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/plan.h"
#include "core/weights.h"
#include "polyattn/attention.h"

namespace polyattn {

// The state of a row that sees n keys; `shift` as the kernel used it, in units
// of its scores. For a divisor other than `sum`, `scale` is what it comes to.
template <typename T>
RowState end_row(const WeightParams<T>& params, const RowSums& sums,
                 double shift, double scale, double n) {
  if (n == 0) return {0, 0};
  RowState row = {shift / params.score_factor, scale};
  if (params.form == WeightForm::kSigmoid && shift != 0)
    row.shift = std::log(n);
  if (params.sum) {
    const double z = sums.weight * std::abs(params.gain);
    row.scale = z == 0 ? 0 : 1 / z;
  }
  return row;
}

// Adds the row's share to the statistics of its head. For `sum`, the row of the
// Jacobian is w'_k (delta_jk - A_j sign(w_k)) / z, whose squares add up to
// (1 + sum A^2) sum (w'/z)^2 - 2 sum (w'/z)^2 |A|.
template <typename T>
void add_row(const WeightParams<T>& params, const RowSums& sums,
             const RowState& row, AttentionStats& total) {
  const double c2 = row.scale * row.scale * params.gain * params.gain;
  const double weight_sq = c2 * sums.weight_sq;
  double jacobian_sq = c2 * sums.derivative_sq;
  if (params.sum)
    jacobian_sq = (1 + weight_sq) * jacobian_sq -
                  2 * c2 * std::sqrt(c2) * sums.derivative_sq_weight;
  total.weight_sq += weight_sq;
  total.jacobian_sq += jacobian_sq;
  total.max_abs_score =
      std::max(total.max_abs_score, sums.top_score / params.score_factor);
}

}  // namespace polyattn
