#include "core/decay_bound.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/decay.h"

namespace polyattn::test {
namespace {

// What a row or a key brings in, and how far that may be off.
struct Term {
  double size = 0, error = 0;

  void add(double s, double e) {
    size += s;
    error += e;
  }
};

// o . do of row i, added to the sum of the rows of its last key.
void add_row(const DecayBoundInputs& in, const Outputs& bound, std::int64_t b,
             std::int64_t h, std::int64_t i, Term& term) {
  const Problem& p = in.problem;
  const Sequence s = p.sequence(b);
  for (std::int64_t c = 0; c < p.e; ++c) {
    const Extents x = {s.batch, h, s.q_begin + i, c};
    const double o = std::fabs(at(in.want.o.tensor, x));
    const double d_o = std::fabs(at(in.d_o, x)), off = at(bound.o.tensor, x);
    term.add(o * d_o, d_o * off + 3 * in.u * d_o * (o + off));
  }
}

void add_key(const DecayBoundInputs& in, std::int64_t b, std::int64_t g,
             std::int64_t j, Term& term) {
  const Problem& p = in.problem;
  const Sequence s = p.sequence(b);
  const bool sum = p.activation.divisor == Divisor::kSum;
  for (std::int64_t c = 0; c < p.e + (sum ? 1 : 0); ++c) {
    const Extents x = {s.batch, g, s.k_begin + j, c};
    const double v = c < p.e ? std::fabs(at(p.in.v, x)) : 1;
    const double error = at(in.dv_error, x) + in.lost;
    // The gradient by the ones is as large as what the others add up to.
    const double dv = c < p.e ? std::fabs(at(in.want.dv.tensor, x)) : 0;
    term.add(v * dv, v * error + 3 * in.u * v * (dv + error));
  }
}

double storing(double x, DType storage) {
  if (storage == DType::kF64) return 0;
  const double first = x * 0x1p-24 + 0x1p-149;
  if (storage == DType::kBF16) return first + x * 0x1p-8 + 0x1p-133;
  if (storage == DType::kF16) return first + x * 0x1p-11 + 0x1p-24;
  return first;
}

// Adds the bounds of the keys of head g of sequence b.
void bound_head(const DecayBoundInputs& in, const Outputs& bound,
                std::int64_t b, std::int64_t g, Buffer& to) {
  const Problem& p = in.problem;
  const Sequence s = p.sequence(b);
  const bool sum = p.activation.divisor == Divisor::kSum;
  const std::int64_t members = p.heads / p.kv_heads;
  std::vector<double> factor(static_cast<std::size_t>(s.m)), n(factor);
  find_decay(p, b, g, factor.data(), n.data());
  Term crossing, by_n;
  for (std::int64_t j = s.m - 1; j >= 0; --j) {
    Term rows;
    for (std::int64_t i = 0; i < s.n && !sum; ++i) {
      if (p.keys_of(s, i).end != j + 1) continue;
      for (std::int64_t m = 0; m < members; ++m)
        add_row(in, bound, b, g * members + m, i, rows);
    }
    const auto k = static_cast<std::size_t>(j);
    crossing.add(rows.size, rows.error);
    add_key(in, b, g, j, crossing);
    if (n[k] > 0) {
      const double slope = std::fabs(row_scale_slope(p.activation, n[k]));
      by_n.add(rows.size * slope, rows.error * slope);
    }
    const double times = 2 * std::max(n[k] - 1, 0.0);
    const double roundings =
        static_cast<double>(8 * (s.m + s.n * members + p.e) + 50) * 0x1p-53;
    const double off =
        crossing.error + times * by_n.error +
        roundings * (crossing.size + crossing.error +
                     times * (by_n.size + by_n.error) * (1 + sum_of_logs(p)));
    const Extents& size = to.tensor.size;
    const Extents x = {size[0] == 1 ? 0 : s.batch, size[1] == 1 ? 0 : g,
                       size[2] == 1 ? 0 : s.k_begin + j, 0};
    to.set(x, at(to.tensor, x) + off);
    const double f2 = factor[k] * factor[k];
    by_n = {by_n.size * f2, by_n.error * f2};
    if (factor[k] == 0) crossing = {};
  }
}

}  // namespace

double sum_of_logs(const Problem& p) {
  double most = 0;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    const Sequence s = p.sequence(b);
    for (std::int64_t g = 0; g < p.kv_heads; ++g) {
      double sum = 0;
      for (std::int64_t j = 0; j < s.m; ++j) {
        const double x = log_decay_at(p, s, g, j);
        if (std::isfinite(x)) sum -= x;
      }
      most = std::max(most, sum);
    }
  }
  return most;
}

void bound_decay(const DecayBoundInputs& in, Outputs& bound) {
  const Problem& p = in.problem;
  Buffer& to = bound.d_log_decay;
  const Extents& size = to.tensor.size;
  for_each_index(size, [&](const Extents& x) { to.set(x, 0); });
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t g = 0; g < p.kv_heads && p.heads > 0; ++g)
      bound_head(in, bound, b, g, to);
  for_each_index(size, [&](const Extents& x) {
    double off = at(to.tensor, x);
    if (std::isnan(off)) off = kInf;
    const double want = std::fabs(at(in.want.d_log_decay.tensor, x));
    to.set(x, off + storing(want + off, in.storage));
  });
}

}  // namespace polyattn::test
