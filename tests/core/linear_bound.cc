// How far the linear path may be from the reference, by the standard model of
// rounding: every operation in precision u is off by a factor 1 + d, |d| <= u.
//
// Everything that the path adds up is a sum of products of inputs. With the
// features a of all degrees, the keys j and t_i, the gradient by the sums of
// row i (c d_o, and under `sum` one more column, -sign c d_o.o, beside which v
// has a column of ones):
//
//   c sum_a w_a q_i^a (sum_j k_j^a v_j)                          o, z
//   sum_a w_a k_j^a (sum_i q_i^a t_i)                            dv
//   scale sum_a w_a d(q_i^a) (sum_j k_j^a (v_j . t_i))           dq, and so dk
//
// A product that takes part in K roundings, those of its own factors and those
// of the additions that it goes through, comes out times (1 + d)^K, whatever
// the order of the additions, so the sum is off by at most
//
//   gamma_K (the same sum of absolute values),   gamma_K = K u / (1 - K u).
//
// The sum of absolute values is attention itself, with |q|, |k|, |v|, |t|, the
// scale and the coefficients all positive: the reference computes it, forward
// and backward. Nothing cancels there, so it is larger than what it bounds, the
// more so the wider the rows: that, and the number of features in K, is what
// the linear path costs in precision.
//
// K counts, for degree p at width D with R features:
//   q        p (2 + I): scale rounded, q times scale; I: inputs rounded to T
//   k, v     p I + I
//   w        2 p in double, 1 to T, 1 to apply it
//   feature  p - 1 products, of q and of k; 2 p for the derivative
//   state    as many as there are keys (queries of all heads of a group), + 2
//   meeting  o, dv: R + 1. dq, dk: the columns, E + 2, and the additions to an
//            element, at most one for each place where its index stands in a
//            feature. By symmetry that is p R / D for each index; prefixes
//            that are shared gather D addends first.
//   dense    Inside a chunk of a causal call: p (D + 4) for the power of a
//            score, 2 p + 1 for Horner's rule, E + 6 for the gradient by it.
//            A pair of a query and a key is either here or in the state.
//   decay    A fade meets at most 6 roundings, of its factors in f32 and of the
//            products with them, and one for each chunk of at least 48 keys.
//            In double its logarithms and factors are as many as the keys.
//   ends     Parts of groups (at most 8), the sums of a chunk times and over
//            their own row scale, the row scale: 24 are above these.
// The reference rounds too, in double: at most p (D + 4) + 2 p, and an addition
// for each key, column or query.
//
// Divisors. c of sqrt(N) and N is the reference's. Under `sum`, c = 1/z is off
// by a factor 1 + rho, rho = e / (1 - e) with e = (error of z) / z, hence o by
// c (1 + rho) (error of the sum) + rho |o|. Then t is off too: by rho, and in
// its last column by what the stored o is off. All gradients are linear in t,
// so absolute attention backward with gamma |t| + (1 + gamma) |error of t| in
// the place of d_o is their bound. Where e >= 1 anything can come of a row. The
// sign of a weight is taken as sure: the polynomials under `sum` in the tests
// vanish at 0 alone, where the derivative vanishes with its errors.
//
// The gradient of log_decay, by decay_bound.h, from the bounds of o and dv.
//
// Underflow: an operation may lose 2^-149 (2^-1074) and what is lost meets at
// most all factors that come after. Factors below 1 taken as 1, that is far
// below anything else as long as inputs are near 1.
#include "core/linear_bound.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/decay_bound.h"
#include "core/problem.h"

namespace polyattn::test {
namespace {

constexpr double kReferenceUnit = 0x1p-53;

double gamma(double roundings, double u) {
  return roundings * u / (1 - roundings * u);
}

// Number of multi-indices: C(width + degree - 1, degree).
double monomials(double width, int degree) {
  double count = 1;
  for (int i = 1; i <= degree; ++i) count *= (width - 1 + i) / i;
  return degree > 0 && width == 0 ? 0 : count;
}

// What storing adds, from compute type to storage type.
double storing(double x, DType storage, DType compute) {
  const bool narrowed = compute == DType::kF64 && storage != DType::kF64;
  const double first = narrowed ? std::fabs(x) * 0x1p-24 + 0x1p-149 : 0;
  if (storage == DType::kBF16) return first + std::fabs(x) * 0x1p-8 + 0x1p-133;
  if (storage == DType::kF16) return first + std::fabs(x) * 0x1p-11 + 0x1p-24;
  return first;
}

// |t| in double, with columns of ones behind it.
Buffer absolute(const ConstTensor& t, std::int64_t ones) {
  Extents size = t.size;
  size[3] += ones;
  Buffer out(DType::kF64, size, contiguous_strides(size));
  for_each_index(size, [&](const Extents& x) {
    out.set(x, x[3] < t.size[3] ? std::fabs(at(t, x)) : 1);
  });
  return out;
}

// The largest finite magnitude, but at least 1.
double reach(const Buffer& b) {
  double most = 1;
  for_each_index(b.tensor.size, [&](const Extents& x) {
    const double size = std::fabs(at(b.tensor, x));
    if (std::isfinite(size)) most = std::max(most, size);
  });
  return most;
}

// K of the opening comment.
struct Counts {
  explicit Counts(const Problem& p) {
    const auto d = static_cast<double>(p.d), e = static_cast<double>(p.e);
    const auto keys = static_cast<double>(p.m);
    const auto queries =
        static_cast<double>(p.kv_heads > 0 ? p.heads / p.kv_heads * p.n : 0);
    const int top = p.activation.degree;
    const double in =
        p.compute == DType::kF32 && p.in.q.dtype == DType::kF64 ? 1 : 0;
    double places = 0;
    for (int i = 0; i <= top; ++i) {
      if (p.activation.coefficient[static_cast<std::size_t>(i)] == 0) continue;
      features += monomials(d, i);
      if (d > 0) places += i * monomials(d, i) / d;
    }
    const double dense = top * (d + 4) + 2 * top + 1;
    const double both = top * (2 + 2 * in) + in + 2 * top + 2 + 2 * top + 24;
    forward = both + keys + 2 + std::max(features + 1, dense);
    backward = both + in + 2 * top + std::max(keys, queries) + 2 +
               std::max({features + 1, e + 2 + places + d, e + 6 + dense});
    reference = dense + e + std::max(keys, queries) + 4;
    dot = e + 4 + 2 * in;
    if (!p.decays()) return;
    forward += 6 + keys / 48;
    backward += 12 + std::max(keys, queries) / 48;
    reference += 4 * keys + sum_of_logs(p);
  }
  double features = 0, forward = 0, backward = 0, reference = 0;
  double dot = 0;  // of o and d_o
};

class LinearBounds {
 public:
  LinearBounds(const Instance& instance, const Outputs& want, DType storage)
      : p_(check_problem("linear_bound", instance.inputs(), instance.config())),
        u_(p_.compute == DType::kF32 ? 0x1p-24 : 0x1p-53),
        count_(p_),
        d_o_(instance.d_o.tensor),
        want_(want),
        storage_(storage),
        q_(absolute(p_.in.q, 0)),
        k_(absolute(p_.in.k, 0)),
        v_(absolute(p_.in.v, 1)),
        sums_(absolute(want.o.tensor, 1)),
        t_(absolute(want.o.tensor, 1)),
        bound_(instance.outputs(DType::kF64)) {
    inputs_ = p_.in;
    inputs_.q = q_.tensor, inputs_.k = k_.tensor, inputs_.v = v_.tensor;
    config_ = {.activation = p_.activation,
               .scale = std::fabs(p_.scale),
               .causal = p_.causal,
               .compute = DType::kF64};
    if (p_.decays()) config_.path = Path::kAuto;
    config_.activation.divisor = Divisor::kOne;
    for (double& c : config_.activation.coefficient) c = std::fabs(c);
    reference_gamma_ = gamma(count_.reference, kReferenceUnit);
    gamma_ = gamma(count_.forward, u_) + reference_gamma_;
    back_gamma_ = gamma(count_.backward, u_) + reference_gamma_;
    underflow_ = find_underflow();
  }

  Outputs run() {
    reference_forward(inputs_, config_, {sums_.tensor, {}, {}});
    const Extents& s = d_o_.size;
    for_each_index({s[0], s[1], s[2], 1}, [&](const Extents& x) {
      bound_row(x, index((x[0] * s[1] + x[1]) * s[2] + x[2]));
    });
    Buffer dv(DType::kF64, v_.tensor.size, v_.tensor.stride);
    reference_backward(inputs_, config_, t_.tensor,
                       {bound_.dq.tensor, bound_.dk.tensor, dv.tensor});
    if (p_.decays())
      bound_decay({.problem = p_,
                   .d_o = d_o_,
                   .want = want_,
                   .dv_error = dv.tensor,
                   .u = u_,
                   .lost = underflow_ * reach(t_),
                   .storage = storage_},
                  bound_);
    const double lost = underflow_ * static_cast<double>(p_.e + 1) * reach(t_);
    finish(bound_.dq, want_.dq, lost, bound_.dq);
    finish(bound_.dk, want_.dk, lost, bound_.dk);
    finish(dv, want_.dv, lost, bound_.dv);
    return std::move(bound_);
  }

 private:
  static std::size_t index(std::int64_t i) {
    return static_cast<std::size_t>(i);
  }
  bool sum() const { return p_.activation.divisor == Divisor::kSum; }

  double find_underflow() const {
    const double smallest = p_.compute == DType::kF32 ? 0x1p-149 : 0x1p-1074;
    const int top = p_.activation.degree;
    double factor = std::tgamma(top + 1);
    for (const double c : config_.activation.coefficient)
      factor = std::max(factor, c * std::tgamma(top + 1));
    const double scores = reach(q_) * reach(k_) * std::max(*config_.scale, 1.0);
    return smallest * std::pow(count_.backward, 2) * (count_.features + 1) *
           factor * std::pow(scores, top) * reach(v_);
  }

  // How far the row scale is off, as a share of it; infinite if z may be lost.
  double scale_error(double c, double z) const {
    if (!sum() || z == 0) return 0;
    const double off = (gamma_ * z + underflow_) * c;
    return c > 0 && off < 1 ? off / (1 - off) : kInf;
  }

  // x: the row. Bounds o and the row state, and puts into t_ what absolute
  // attention backward makes the bounds of the gradients of.
  void bound_row(const Extents& x, std::size_t row) {
    const auto column = [&](std::int64_t e) {
      return Extents{x[0], x[1], x[2], e};
    };
    const double c = want_.rows[row].scale;
    const double rho = scale_error(c, at(sums_.tensor, column(p_.e)));
    if (rho == kInf) return give_up(x, row);
    const double by_n = p_.decays() ? static_cast<double>(p_.m) * 0x1p-50 : 0;
    bound_.rows[row] = {0, c * (rho + by_n + 0x1p-50)};
    double last = 0, last_error = 0;
    for (std::int64_t e = 0; e < p_.e; ++e) {
      const double o = at(want_.o.tensor, column(e));
      const double d_o = at(d_o_, column(e)), size = std::fabs(d_o);
      const double sum = at(sums_.tensor, column(e));
      double off =
          c * (1 + rho) * (gamma_ * sum + underflow_) + rho * std::fabs(o);
      off += storing(std::fabs(o) + off, storage_, p_.compute);
      bound_.o.set(column(e), off);
      t_.set(column(e), c * size * (rho + (1 + rho) * back_gamma_));
      last += c * d_o * o;
      last_error +=
          c * size *
          ((1 + rho) * (off + gamma(count_.dot, u_) * (std::fabs(o) + off)) +
           reference_gamma_ * c * sum);
    }
    last = std::fabs(last);
    last_error += rho * last;
    t_.set(column(p_.e),
           sum() ? last_error + back_gamma_ * (last + last_error) : 0);
  }

  void give_up(const Extents& x, std::size_t row) {
    bound_.rows[row] = {0, kInf};
    for (std::int64_t e = 0; e <= p_.e; ++e) {
      t_.set({x[0], x[1], x[2], e}, kInf);
      if (e < p_.e) bound_.o.set({x[0], x[1], x[2], e}, kInf);
    }
  }

  // Zero times infinite is a bound that is lost too.
  void finish(const Buffer& error, const Buffer& want, double lost,
              Buffer& bound) const {
    for_each_index(want.tensor.size, [&](const Extents& x) {
      double off = at(error.tensor, x) + lost;
      if (std::isnan(off)) off = kInf;
      const double size = std::fabs(at(want.tensor, x)) + off;
      bound.set(x, off + storing(size, storage_, p_.compute));
    });
  }

  Problem p_;
  double u_;
  Counts count_;
  ConstTensor d_o_;
  const Outputs& want_;
  DType storage_;
  Buffer q_, k_, v_;  // absolute; v with a column of ones
  Buffer sums_;       // absolute attention of them
  Buffer t_;
  AttentionInputs inputs_;
  AttentionConfig config_;
  double reference_gamma_ = 0, gamma_ = 0, back_gamma_ = 0, underflow_ = 0;
  Outputs bound_;
};

}  // namespace

Outputs linear_bound(const Instance& instance, const Outputs& want,
                     DType storage) {
  return LinearBounds(instance, want, storage).run();
}

}  // namespace polyattn::test
