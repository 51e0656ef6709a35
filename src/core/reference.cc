// The definition of attention, one row at a time, in double precision. What is
// written here is what every kernel must compute; nothing here is fast.
#include "polyattn/reference.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/decay.h"
#include "core/problem.h"
#include "core/reference_row.h"

namespace polyattn {
namespace {

using reference::dot;
using reference::for_each_row;
using reference::key_offset;
using reference::Place;
using reference::query_offset;
using reference::Row;
using reference::Sum;

// Of a row divided by its sum z of absolute weights:
//   dA_j/ds_k = (w'_k / z) (delta_jk - A_j sign(w_k)),
// whose squares sum, where no w_k is 0, to (1 + sum A^2) sum (w'/z)^2 - 2 sum
// (w'/z)^2 |A|. The other rows have dA_j/ds_k = delta_jk slope_k.
void add_stats(const Problem& p, const Row& row, AttentionStats& stats) {
  double weight_sq = 0, slope_sq = 0, cross = 0;
  for (std::size_t j = 0; j < row.key.size(); ++j) {
    const double a = row.attention[j], g = row.slope[j];
    weight_sq += a * a;
    slope_sq += g * g;
    cross += g * g * std::fabs(a);
    stats.max_abs_score =
        std::max(stats.max_abs_score, std::fabs(row.score[j]));
  }
  stats.weight_sq += weight_sq;
  stats.jacobian_sq += p.activation.divisor == Divisor::kSum
                           ? (1 + weight_sq) * slope_sq - 2 * cross
                           : slope_sq;
}

// Writes row i of the output and returns how many of its elements, as stored,
// are not finite.
std::int64_t write_output(const Problem& p, Place at, const Row& row,
                          const Tensor& o) {
  std::int64_t non_finite = 0;
  const std::int64_t offset = query_offset(p, o.stride, at);
  for (std::int64_t c = 0; c < p.e; ++c) {
    double sum = 0;
    for (std::size_t j = 0; j < row.key.size(); ++j) {
      const std::int64_t v = key_offset(p, p.in.v.stride, at, row.key[j]);
      sum += row.kept[j] * row.attention[j] *
             load_element(p.in.v.data, p.in.v.dtype, v + c);
    }
    store_element(o.data, o.dtype, offset + c, sum);
    if (!std::isfinite(load_element(o.data, o.dtype, offset + c))) ++non_finite;
  }
  return non_finite;
}

// What `sum` takes from the gradient of each weight.
double pull_of_sum(const Activation& activation, const Row& row,
                   const std::vector<double>& d_a) {
  double mean = 0;
  if (activation.divisor == Divisor::kSum) {
    for (std::size_t j = 0; j < d_a.size(); ++j) {
      mean += row.attention[j] * d_a[j];
    }
  }
  return mean;
}

// dL/ds of the row from dL/dA.
std::vector<double> score_gradient(const Activation& activation, const Row& row,
                                   const std::vector<double>& d_a) {
  const double mean = pull_of_sum(activation, row, d_a);
  std::vector<double> d_s(d_a.size());
  for (std::size_t j = 0; j < d_a.size(); ++j) {
    const double sign = (row.weight[j] > 0) - (row.weight[j] < 0);
    d_s[j] = row.slope[j] * (d_a[j] - sign * mean);
  }
  return d_s;
}

// Adds dL/d(log factor) of the row's keys: fade_ij holds the factors of all
// keys after j, and n is the sum of fade^2.
void add_decay_gradient(const Problem& p, Place at, const Row& row,
                        const std::vector<double>& d_a, Sum& d_log_decay) {
  const Sequence s = p.sequence(at.b);
  const double mean = pull_of_sum(p.activation, row, d_a);
  double d_n = 0;
  for (std::size_t x = 0; x < row.key.size(); ++x)
    d_n += row_scale_slope(p.activation, row.n) * row.attention[x] * d_a[x];
  double before = 0;  // fade dL/dfade of the keys so far
  for (std::size_t x = 0; x < row.key.size(); ++x) {
    const std::int64_t j = row.key[x];
    const std::int64_t offset =
        broadcast_offset(d_log_decay.size, d_log_decay.stride, s.batch,
                         p.kv_head(at.h), s.k_begin + j, 0);
    const double log_factor = log_decay_at(p, s, p.kv_head(at.h), j);
    if (std::isfinite(log_factor))
      d_log_decay.value[static_cast<std::size_t>(offset)] += before;
    const double sign = (row.weight[x] > 0) - (row.weight[x] < 0);
    before += row.attention[x] * (d_a[x] - sign * mean) +
              2 * d_n * row.fade[x] * row.fade[x];
  }
}

}  // namespace

void reference_forward(const AttentionInputs& inputs,
                       const AttentionConfig& config,
                       const AttentionResults& results) {
  const Problem p = check_problem("reference_forward", inputs, config);
  check_results("reference_forward", p, results);
  std::fill(results.stats.begin(), results.stats.end(), AttentionStats{});
  for_each_row(p, [&](Place at, const Row& row) {
    const std::int64_t non_finite = write_output(p, at, row, results.o);
    if (!results.rows.empty()) {
      results.rows[p.row_index(at.b, at.h, at.i)] = row.state;
    }
    if (!results.stats.empty()) {
      AttentionStats& stats = results.stats[at.b * p.heads + at.h];
      add_stats(p, row, stats);
      stats.non_finite += non_finite;
    }
  });
}

void reference_backward(const AttentionInputs& inputs,
                        const AttentionConfig& config, const ConstTensor& d_o,
                        const AttentionGradients& gradients) {
  const Problem p = check_problem("reference_backward", inputs, config);
  // Rows are computed again here and o is not needed, so stand-ins of the
  // right shape take their places in the check.
  const Extents& q = inputs.q.size;
  const std::vector<RowState> rows(
      static_cast<std::size_t>(element_count({q[0], q[1], q[2], 1})));
  check_backward("reference_backward", p, {.d_o = d_o, .o = d_o, .rows = rows},
                 gradients);
  Sum dq(inputs.q.size), dk(inputs.k.size), dv(inputs.v.size);
  Sum d_bias(inputs.bias ? inputs.bias->size : Extents{});
  Sum d_log_decay(inputs.log_decay ? inputs.log_decay->size : Extents{});
  for_each_row(p, [&](Place at, const Row& row) {
    const std::int64_t q_row = query_offset(p, inputs.q.stride, at);
    const std::int64_t d_o_row = query_offset(p, d_o.stride, at);
    std::vector<double> d_a;
    for (std::size_t x = 0; x < row.key.size(); ++x) {
      const std::int64_t v = key_offset(p, inputs.v.stride, at, row.key[x]);
      d_a.push_back(row.kept[x] * dot(d_o, d_o_row, inputs.v, v));
    }
    const std::vector<double> d_s = score_gradient(p.activation, row, d_a);
    if (p.decays()) add_decay_gradient(p, at, row, d_a, d_log_decay);
    for (std::size_t x = 0; x < row.key.size(); ++x) {
      const std::int64_t j = row.key[x];
      dq.add(query_offset(p, dq.stride, at), p.scale * d_s[x], inputs.k,
             key_offset(p, inputs.k.stride, at, j));
      dk.add(key_offset(p, dk.stride, at, j), p.scale * d_s[x], inputs.q,
             q_row);
      dv.add(key_offset(p, dv.stride, at, j), row.kept[x] * row.attention[x],
             d_o, d_o_row);
      if (inputs.bias) {
        const std::int64_t offset =
            broadcast_offset(d_bias.size, d_bias.stride, at.b, at.h, at.i, j);
        d_bias.value[static_cast<std::size_t>(offset)] += d_s[x];
      }
    }
  });
  dq.store(gradients.dq);
  dk.store(gradients.dk);
  dv.store(gradients.dv);
  d_bias.store(gradients.d_bias);
  d_log_decay.store(gradients.d_log_decay);
}

}  // namespace polyattn
