// The rounding errors of the double backward, in the order of its computation,
// by the standard model of error_bound.cc: a number is a value and how far the
// kernel's may be from it; a product or sum of two adds a rounding, a sum of n
// products (n + 1) u of their sizes. The rows are given, exactly but for their
// rounding to the compute type, so the errors of scores alone are in the
// weights, by the mean value theorem. At a kink of w, or a zero of w under
// `sum`, a score within its error may be taken on either side: the jump is
// added. Products of errors are kept where both numbers are; kSlack, a tenth,
// is above what is left out.
#include "core/double_bound.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/error_bound.h"
#include "core/reference_row.h"

namespace polyattn::test {
namespace {

using reference::dot;
using reference::for_each_row;
using reference::key_offset;
using reference::Place;
using reference::query_offset;
using reference::Row;
using reference::Sum;
using Optional = std::optional<ConstTensor>;

constexpr double kSlack = 1.1;
constexpr double kExp2 = 4;  // error_bound.cc

// A value, and how far the kernel's may be.
struct Near {
  double v = 0, e = 0;
  double far() const { return std::fabs(v) + e; }
};

class Arithmetic {
 public:
  explicit Arithmetic(const Problem& p)
      : u(p.compute == DType::kF32 ? 0x1p-24 : 0x1p-53),
        tiny(p.compute == DType::kF32 ? 0x1p-126 : 0x1p-1022),
        in(p.compute == DType::kF32 && p.in.q.dtype == DType::kF64 ? u : 0) {}

  Near times(Near a, Near b) const {
    return {a.v * b.v, std::fabs(a.v) * b.e + std::fabs(b.v) * a.e + a.e * b.e +
                           u * a.far() * b.far() + tiny};
  }
  Near plus(Near a, Near b) const {
    return {a.v + b.v, a.e + b.e + u * (a.far() + b.far())};
  }
  Near minus(Near a, Near b) const { return plus(a, {-b.v, b.e}); }

  double u, tiny;
  double in;  // rounding of an input to the compute type
};

// The sum of many, in any order.
struct NearSum {
  void add(Near x) {
    sum.v += x.v, sum.e += x.e, size += x.far();
    ++terms;
  }
  Near result(const Arithmetic& a) const {
    return {sum.v, sum.e + (terms + 2) * a.u * size};
  }
  Near sum;
  double size = 0, terms = 0;
};

// Of one key of a row.
struct Key {
  std::int64_t j = 0;
  double kept = 1, sign = 0;
  bool sign_known = true;
  Near w, dw, ddw;     // times nothing: the row scale is in p and u
  Near t, p, u;        // as double_pass-inl.h has them
  Near change, ds, g;  // what it makes of them
};

double absolute_polynomial(const Activation& f, double x, int order) {
  double sum = 0;
  for (int k = f.degree; k >= order; --k) {
    double term = std::fabs(f.coefficient[static_cast<std::size_t>(k)]);
    for (int i = 0; i < order; ++i) term *= k - i;
    sum = sum * x + term;
  }
  return sum;
}

// The error of w, w' or w'' at x, which is off by `error`.
double weight_error(const Activation& f, double x, double error, int order,
                    const Arithmetic& a) {
  switch (f.kind) {
    case ActivationKind::kSoftmax:
      return std::exp(x) * std::expm1(error + kExp2 * a.u) + a.tiny;
    case ActivationKind::kSigmoid: {
      const double slope = std::fabs(f.weight_derivative(x, 1));
      const double size = order == 0 ? std::fabs(f.weight(x, 1)) : slope;
      return slope * std::expm1(error) + (kExp2 + 9) * a.u * size +
             std::fabs(f.gain) * a.tiny;
    }
    case ActivationKind::kPolynomial:
    case ActivationKind::kRelu: {
      const bool relu = f.kind == ActivationKind::kRelu;
      if (relu && x + error <= 0) return 0;
      Activation power = f;
      if (relu) power.coefficient[static_cast<std::size_t>(f.degree)] = f.gain;
      const bool kink = relu && std::fabs(x) <= error;
      const double far = std::fabs(x) + error;
      // Horner's rule for w'' rounds three times a step.
      return absolute_polynomial(power, far, order + 1) * error *
                 (kink ? 2 : 1) +
             (3 * f.degree + 3) * a.u * absolute_polynomial(power, far, order) +
             (kink && order == f.degree ? absolute_polynomial(power, far, order)
                                        : 0) +
             a.tiny;
    }
  }
  return kInf;
}

class DoubleBounds {
 public:
  DoubleBounds(DoubleInstance& twin, DType storage)
      : p_(check_problem("double_bound", twin.instance.inputs(),
                         twin.instance.config())),
        a_(p_),
        in_(twin.inputs()),
        want_(twin.reference()),
        bound_(twin.outputs(DType::kF64)),
        storage_(storage),
        d_o_(want_.d_o.tensor.size),
        dq_(want_.dq.tensor.size),
        dk_(want_.dk.tensor.size),
        dv_(want_.dv.tensor.size),
        d_bias_(want_.d_bias.tensor.size) {}

  DoubleOutputs run() {
    for_each_row(p_, [&](Place at, const Row& row) { add_row(at, row); });
    finish(d_o_, want_.d_o, bound_.d_o);
    finish(dq_, want_.dq, bound_.dq);
    finish(dk_, want_.dk, bound_.dk);
    finish(dv_, want_.dv, bound_.dv);
    if (p_.in.bias) finish(d_bias_, want_.d_bias, bound_.d_bias);
    return std::move(bound_);
  }

 private:
  bool sum() const { return p_.activation.divisor == Divisor::kSum; }

  // x.y of rows of a query and of a key, rounded `more` times beside its sum.
  Near product(const Optional& x, const Optional& y, Place at, std::int64_t j,
               double factor, double more) const {
    if (!x || !y) return {};
    const std::int64_t i = query_offset(p_, x->stride, at);
    const std::int64_t k = key_offset(p_, y->stride, at, j);
    double size = 0, far = 1;
    for (std::int64_t c = 0; c < x->size[3]; ++c) {
      const double b = std::fabs(load_element(y->data, y->dtype, k + c));
      size += std::fabs(load_element(x->data, x->dtype, i + c)) * b;
      far += b;
    }
    const double roundings =
        (static_cast<double>(x->size[3]) + more) * a_.u + 2 * a_.in;
    return {factor * dot(*x, i, *y, k),
            std::fabs(factor) * size * roundings + a_.tiny * far};
  }

  double extra(const Optional& t, Place at, std::int64_t j) const {
    return t ? load_element(
                   t->data, t->dtype,
                   broadcast_offset(t->size, t->stride, at.b, at.h, at.i, j))
             : 0;
  }

  Key find_key(Place at, const Row& row, std::size_t x) const {
    const std::int64_t j = row.key[x];
    const Activation& f = p_.activation;
    const double c = row.state.scale * row.kept[x];
    // Scale and log2(e), their product, q times it; the bias likewise.
    constexpr double kScoreRoundings = 6, kScaleRoundings = 8;
    Near s = product(p_.in.q, p_.in.k, at, j, p_.scale, kScoreRoundings);
    const double argument = row.score[x] - row.state.shift;
    s.e += std::fabs(extra(p_.in.bias, at, j)) * (3 * a_.u + a_.in) +
           a_.u * (std::fabs(row.score[x]) + std::fabs(argument) +
                   3 * std::fabs(row.state.shift));
    Key key;
    key.j = j, key.kept = row.kept[x];
    const auto weight = [&](double value, int order) {
      return Near{value, weight_error(f, argument, s.e, order, a_)};
    };
    key.w = weight(row.weight[x], 0);
    key.dw = weight(f.weight_derivative(argument, 1), 1);
    key.ddw = weight(f.weight_second_derivative(argument, 1), 2);
    key.sign = sum() ? (key.w.v > 0) - (key.w.v < 0) : 0;
    key.sign_known = !sum() || std::fabs(key.w.v) > key.w.e;
    // Sums of two products, and there and back with log2(e).
    key.t = a_.plus(product(in_.uq, p_.in.k, at, j, p_.scale, kScaleRoundings),
                    product(p_.in.q, in_.uk, at, j, p_.scale, kScaleRoundings));
    const double u_bias = extra(in_.u_bias, at, j);
    key.t = a_.plus(key.t, {u_bias, std::fabs(u_bias) * (4 * a_.u + a_.in)});
    key.p = product(in_.d_o, p_.in.v, at, j, c, kScaleRoundings);
    key.u = product(in_.d_o, in_.uv, at, j, c, kScaleRoundings);
    return key;
  }

  // y times the sign of the weight.
  Near with_sign(const Key& key, Near y) const {
    return {key.sign * y.v, y.e + (key.sign_known ? 0 : 2 * y.far())};
  }

  struct Pull {
    Near t, delta, rho;
  };
  Pull find_pull(const Row& row, const std::vector<Key>& keys) const {
    if (!sum()) return {};
    NearSum t, delta, mixed;
    for (const Key& key : keys) {
      const Near moved = a_.times(key.dw, key.t);
      t.add(with_sign(key, moved));
      delta.add(a_.times(key.w, key.p));
      mixed.add(a_.times(moved, key.p));
      mixed.add(a_.times(key.w, key.u));
    }
    const Near c = {row.state.scale, 4 * a_.u * row.state.scale};
    Pull pull{a_.times(c, t.result(a_)), a_.times(c, delta.result(a_)), {}};
    // In double, but the results are rounded.
    pull.rho = a_.minus(a_.times(c, mixed.result(a_)),
                        a_.times({2, 0}, a_.times(pull.delta, pull.t)));
    return pull;
  }

  void pass(Key& key, const Pull& pull) const {
    key.change = a_.minus(a_.times(key.dw, key.t), a_.times(key.w, pull.t));
    const Near h = a_.minus(key.p, with_sign(key, pull.delta));
    const Near rest = a_.minus(a_.minus(key.u, a_.times(pull.t, key.p)),
                               with_sign(key, pull.rho));
    key.ds = a_.times(key.dw, h);
    key.g =
        a_.plus(a_.times(a_.times(key.ddw, key.t), h), a_.times(key.dw, rest));
  }

  // error += what a product of x with an element of `from` adds, in a sum of
  // `terms`.
  void add(Sum& error, std::int64_t offset, Near x, double factor, double terms,
           const Optional& from, std::int64_t from_offset) const {
    if (!from) return;
    const double size =
        std::fabs(factor) * (x.e + x.far() * ((terms + 8) * a_.u + a_.in)) +
        a_.tiny;
    for (std::int64_t c = 0; c < error.size[3]; ++c)
      error.value[static_cast<std::size_t>(offset + c)] +=
          size * std::fabs(
                     load_element(from->data, from->dtype, from_offset + c)) +
          a_.tiny;
  }

  void add_row(Place at, const Row& row) {
    std::vector<Key> keys;
    for (std::size_t x = 0; x < row.key.size(); ++x)
      keys.push_back(find_key(at, row, x));
    const Pull pull = find_pull(row, keys);
    const double n = 2 * static_cast<double>(keys.size());
    const double rows = static_cast<double>(p_.heads / p_.kv_heads * p_.n * 2);
    const auto query = [&](const Sum& t) {
      return query_offset(p_, t.stride, at);
    };
    for (Key& key : keys) {
      pass(key, pull);
      const auto key_row = [&](const Optional& t) {
        return t ? key_offset(p_, t->stride, at, key.j) : 0;
      };
      const auto query_row = [&](const Optional& t) {
        return t ? query_offset(p_, t->stride, at) : 0;
      };
      const double c = row.state.scale * key.kept;
      add(d_o_, query(d_o_), key.change, c, n, p_.in.v, key_row(p_.in.v));
      add(d_o_, query(d_o_), key.w, c, n, in_.uv, key_row(in_.uv));
      add(dq_, query(dq_), key.g, p_.scale, n, p_.in.k, key_row(p_.in.k));
      add(dq_, query(dq_), key.ds, p_.scale, n, in_.uk, key_row(in_.uk));
      const std::int64_t k = key_offset(p_, dk_.stride, at, key.j);
      add(dk_, k, key.g, p_.scale, rows, p_.in.q, query_row(p_.in.q));
      add(dk_, k, key.ds, p_.scale, rows, in_.uq, query_row(in_.uq));
      add(dv_, key_offset(p_, dv_.stride, at, key.j), key.change, c, rows,
          in_.d_o, query_row(in_.d_o));
      if (p_.in.bias)
        d_bias_.value[static_cast<std::size_t>(broadcast_offset(
            d_bias_.size, d_bias_.stride, at.b, at.h, at.i, key.j))] +=
            key.g.e + key.g.far() * bias_terms() * a_.u + a_.tiny;
    }
  }

  // How many entries of A an entry of the bias is added to, at most.
  double bias_terms() const {
    const Extents full = {p_.batch, p_.heads, p_.n, p_.m};
    double terms = 2;
    for (std::size_t i = 0; i < 4; ++i)
      terms *= static_cast<double>(full[i] / p_.in.bias->size[i]);
    return terms;
  }

  void finish(const Sum& error, const Buffer& want, Buffer& bound) const {
    error.store(bound.tensor);
    for_each_index(want.tensor.size, [&](const Extents& x) {
      const double off = kSlack * (at(bound.tensor, x) + a_.tiny);
      const double reach = std::fabs(at(want.tensor, x)) + off;
      bound.set(x, off + storage_error(reach, storage_, p_.compute));
    });
  }

  Problem p_;
  Arithmetic a_;
  AttentionDoubleInputs in_;
  DoubleOutputs want_, bound_;
  DType storage_;
  Sum d_o_, dq_, dk_, dv_, d_bias_;
};

}  // namespace

DoubleOutputs double_bound(DoubleInstance& twin, DType storage) {
  return DoubleBounds(twin, storage).run();
}

}  // namespace polyattn::test
