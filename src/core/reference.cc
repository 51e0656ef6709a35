// The definition of attention, one row at a time, in double precision. What is
// written here is what every kernel must compute; nothing here is fast.
#include "polyattn/reference.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <vector>

#include "core/decay.h"
#include "core/dropout.h"
#include "core/problem.h"

namespace polyattn {
namespace {

// Row i of the attention matrix of one (batch, head): one entry in each vector
// for each key that the row sees.
struct Row {
  std::vector<std::int64_t> key;  // counted from the start of the sequence
  std::vector<double> score;
  std::vector<double> weight;     // before the divisor
  std::vector<double> attention;  // A_ij
  std::vector<double> slope;      // derivative of A_ij by its score alone
  std::vector<double> fade;       // of decay; 1 without
  std::vector<double> kept;       // what dropout multiplies A_ij by
  double n = 0;                   // N of a formula
  RowState state;
};

// Where row i is.
struct Place {
  std::int64_t b, h, i;
};

double dot(const ConstTensor& x, std::int64_t x_offset, const ConstTensor& y,
           std::int64_t y_offset) {
  double sum = 0;
  for (std::int64_t c = 0; c < x.size[3]; ++c) {
    sum += load_element(x.data, x.dtype, x_offset + c) *
           load_element(y.data, y.dtype, y_offset + c);
  }
  return sum;
}

std::int64_t query_offset(const Problem& p, const Extents& stride, Place at) {
  const Sequence s = p.sequence(at.b);
  return row_offset(stride, s.batch, at.h, s.q_begin + at.i);
}

std::int64_t key_offset(const Problem& p, const Extents& stride, Place at,
                        std::int64_t j) {
  const Sequence s = p.sequence(at.b);
  return row_offset(stride, s.batch, p.kv_head(at.h), s.k_begin + j);
}

double bias_at(const Problem& p, Place at, std::int64_t j) {
  if (!p.in.bias) return 0;
  const ConstTensor& t = *p.in.bias;
  return load_element(t.data, t.dtype,
                      broadcast_offset(t.size, t.stride, at.b, at.h, at.i, j));
}

bool mask_at(const Problem& p, Place at, std::int64_t j) {
  if (!p.in.mask) return true;
  const ConstMask& t = *p.in.mask;
  return t.data[broadcast_offset(t.size, t.stride, at.b, at.h, at.i, j)] != 0;
}

void find_scores(const Problem& p, Place at, Row& row) {
  row.key.clear();
  row.score.clear();
  const KeyRange keys = p.keys_of(p.sequence(at.b), at.i);
  for (std::int64_t j = keys.begin; j < keys.end; ++j) {
    const double bias = bias_at(p, at, j);
    if (!mask_at(p, at, j)) continue;
    if (bias == -std::numeric_limits<double>::infinity()) continue;
    row.key.push_back(j);
    row.score.push_back(p.scale *
                            dot(p.in.q, query_offset(p, p.in.q.stride, at),
                                p.in.k, key_offset(p, p.in.k.stride, at, j)) +
                        bias);
  }
}

// fade_ij: the product of the factors of the keys after j that the row sees.
void find_fades(const Problem& p, Place at, Row& row) {
  row.fade.assign(row.key.size(), 1);
  row.n = static_cast<double>(row.key.size());
  if (!p.decays()) return;
  const Sequence s = p.sequence(at.b);
  const std::int64_t g = p.kv_head(at.h);
  double log_fade = 0;
  row.n = 0;
  for (std::size_t x = row.key.size(); x-- > 0;) {
    row.fade[x] = std::exp(log_fade);
    row.n += row.fade[x] * row.fade[x];
    log_fade += log_decay_at(p, s, g, row.key[x]);
  }
}

double shift_of(const Activation& activation, const Row& row) {
  if (activation.kind == ActivationKind::kSoftmax) {
    return *std::max_element(row.score.begin(), row.score.end());
  }
  return activation.log_n_bias ? std::log(row.n) : 0;
}

double scale_of(const Activation& activation, const Row& row) {
  if (activation.divisor != Divisor::kSum) {
    return activation.row_scale(row.n);
  }
  double sum = 0;
  for (std::size_t j = 0; j < row.key.size(); ++j)
    sum += row.fade[j] * std::fabs(row.weight[j]);
  return sum == 0 ? 0 : 1 / sum;
}

void find_row(const Problem& p, Place at, Row& row) {
  find_scores(p, at, row);
  find_fades(p, at, row);
  row.weight.clear();
  row.attention.clear();
  row.slope.clear();
  row.kept.clear();
  row.state = {};
  if (row.key.empty()) return;
  // A sigmoid's log n is in the shift, hence n = 1 (log n = 0) in its weight.
  row.state.shift = shift_of(p.activation, row);
  for (const double s : row.score) {
    row.weight.push_back(p.activation.weight(s - row.state.shift, 1));
  }
  row.state.scale = scale_of(p.activation, row);
  for (std::size_t j = 0; j < row.key.size(); ++j) {
    const double x = row.score[j] - row.state.shift;
    const double scale = row.state.scale * row.fade[j];
    row.attention.push_back(scale * row.weight[j]);
    row.slope.push_back(scale * p.activation.weight_derivative(x, 1));
    const bool dropped =
        p.dropout.p > 0 && is_dropped(p.dropout, at.b, at.h, at.i, row.key[j]);
    row.kept.push_back(dropped ? 0 : kept_factor(p.dropout));
  }
}

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

// Calls body(place, row) for every row of every sequence and head.
template <typename Body>
void for_each_row(const Problem& p, const Body& body) {
  Row row;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.heads; ++h) {
      for (std::int64_t i = 0; i < p.sequence(b).n; ++i) {
        find_row(p, {b, h, i}, row);
        body(Place{b, h, i}, row);
      }
    }
  }
}

// A gradient while it is summed up: dense, in double precision.
struct Sum {
  explicit Sum(const Extents& like)
      : size(like),
        stride(contiguous_strides(like)),
        value(static_cast<std::size_t>(element_count(like))) {}

  // Adds factor times the width elements of x that begin at x_offset.
  void add(std::int64_t offset, double factor, const ConstTensor& x,
           std::int64_t x_offset) {
    for (std::int64_t c = 0; c < size[3]; ++c) {
      value[static_cast<std::size_t>(offset + c)] +=
          factor * load_element(x.data, x.dtype, x_offset + c);
    }
  }

  void store(const std::optional<Tensor>& to) const {
    if (!to) return;
    const std::int64_t rows = size[3] == 0 ? 0 : std::ssize(value) / size[3];
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::int64_t offset =
          row_offset(to->stride, r / size[2] / size[1], r / size[2] % size[1],
                     r % size[2]);
      for (std::int64_t c = 0; c < size[3]; ++c) {
        store_element(to->data, to->dtype, offset + c,
                      value[static_cast<std::size_t>(r * size[3] + c)]);
      }
    }
  }

  Extents size, stride;
  std::vector<double> value;
};

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
