#include "core/reference_row.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "core/decay.h"
#include "core/dropout.h"

namespace polyattn::reference {
namespace {

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

}  // namespace

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

void find_row(const Problem& p, Place at, Row& row) {
  find_scores(p, at, row);
  find_fades(p, at, row);
  row.weight.clear();
  row.attention.clear();
  row.slope.clear();
  row.curvature.clear();
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
    row.curvature.push_back(scale *
                            p.activation.weight_second_derivative(x, 1));
    const bool dropped =
        p.dropout.p > 0 && is_dropped(p.dropout, at.b, at.h, at.i, row.key[j]);
    row.kept.push_back(dropped ? 0 : kept_factor(p.dropout));
  }
}

void Sum::add(std::int64_t offset, double factor, const ConstTensor& x,
              std::int64_t x_offset) {
  for (std::int64_t c = 0; c < size[3]; ++c) {
    value[static_cast<std::size_t>(offset + c)] +=
        factor * load_element(x.data, x.dtype, x_offset + c);
  }
}

void Sum::store(const std::optional<Tensor>& to) const {
  if (!to) return;
  const std::int64_t rows = size[3] == 0 ? 0 : std::ssize(value) / size[3];
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t offset = row_offset(to->stride, r / size[2] / size[1],
                                           r / size[2] % size[1], r % size[2]);
    for (std::int64_t c = 0; c < size[3]; ++c) {
      store_element(to->data, to->dtype, offset + c,
                    value[static_cast<std::size_t>(r * size[3] + c)]);
    }
  }
}

}  // namespace polyattn::reference
