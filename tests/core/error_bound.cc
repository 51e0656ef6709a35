// How far the kernels may be from the reference, by the standard model of
// rounding: every operation in precision u is off by a factor 1 + d, |d| <= u,
// so a sum of n products, in any order, is off by at most (n + 1) u times the
// sum of their absolute values (n u where multiply-adds are fused).
//
// Errors are carried through in the order of the computation:
//   score    s = scale q.k + bias: D products, and the roundings of scale, q
//            times scale, and bias.
//   weight   w(s): what the score's error makes of it, by the mean value
//            theorem (the largest |w'| within the error), and its own
//            roundings.
//   scale c  of the row: for `sum`, from the errors of the weights.
//   output   c sum w v: the above, and n products.
//   backward g = c d_o.v, delta = c o.d_o from the stored o, ds = w' (g - sign
//            delta), and sums of n or group * N products.
// At a kink of w, or a zero of w under `sum`, a score within its error may be
// taken on either side: the jump is added.
//
// Where errors meet, their products are kept if one of them may be large (that
// of c, of w and of w'); what is left out are products with a multiple of u,
// and kSlack, a tenth, is above these. Underflow: an operation may lose 2^-149
// (2^-1074); Precision::tiny is 2^23 (2^52) times that, which leaves room for
// the factors that come after.
#include "core/error_bound.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/dropout.h"
#include "core/problem.h"

namespace polyattn::test {
namespace {

constexpr double kSlack = 1.1;

// Exp2, in units of u. Its last step, 1 + t r with |t r| <= 0.42 of the result,
// rounds once, or twice unfused, and takes 0.42 of the error of t, itself below
// 2.4; the polynomial is 0.1 off. In all 1 + 0.42 + 1 + 0.1 < 4.
constexpr double kExp2 = 4;

// c to T, times gain, applied; 1/z or 1/sqrt(n) in double.
constexpr double kScaleRoundings = 6;

// The output of softmax is rescaled once for each block of keys, and no block
// but the last has fewer.
constexpr std::int64_t kLeastKeyBlock = 64;

struct Precision {
  explicit Precision(const Problem& p)
      : u(p.compute == DType::kF32 ? 0x1p-24 : 0x1p-53),
        tiny(p.compute == DType::kF32 ? 0x1p-126 : 0x1p-1022),
        in(p.compute == DType::kF32 && p.in.q.dtype == DType::kF64 ? u : 0) {}
  double u;
  double tiny;
  double in;  // rounding of an input to the compute type
};

// A weight before the divisor and its derivative, and their errors.
struct WeightBound {
  double w, dw, w_error, dw_error;
};

// sum_k |c_k| x^k differentiated `order` times, for x >= 0.
double absolute_polynomial(const Activation& f, double x, int order) {
  double sum = 0;
  for (int k = f.degree; k >= order; --k) {
    double term = std::fabs(f.coefficient[static_cast<std::size_t>(k)]);
    for (int i = 0; i < order; ++i) term *= k - i;
    sum = sum * x + term;
  }
  return sum;
}

// A power takes `degree` roundings, Horner's rule two a step, the coefficients
// one.
WeightBound polynomial_bound(const Activation& f, double x, double error,
                             const Precision& r) {
  const auto lower = f.coefficient.begin();
  const bool power =
      std::all_of(lower, lower + f.degree, [](double c) { return c == 0; });
  const double roundings = ((power ? 1 : 2) * f.degree + 1) * r.u;
  const double far = std::fabs(x) + error;
  const double p0 = absolute_polynomial(f, far, 0);
  const double p1 = absolute_polynomial(f, far, 1);
  const double p2 = absolute_polynomial(f, far, 2);
  return {f.weight(x, 1), f.weight_derivative(x, 1),
          p1 * error + roundings * p0 + r.tiny,
          p2 * error + roundings * p1 + r.tiny};
}

WeightBound relu_bound(const Activation& f, double x, double error,
                       const Precision& r) {
  const double far = x + error;
  if (far <= 0) return {};
  Activation power = f;
  power.kind = ActivationKind::kPolynomial;
  power.coefficient[static_cast<std::size_t>(f.degree)] = f.gain;
  WeightBound bound =
      polynomial_bound(power, std::max(x, 0.0), x > 0 ? error : far, r);
  bound.w = f.weight(x, 1);
  bound.dw = f.weight_derivative(x, 1);
  if (f.degree == 1 && x <= error) bound.dw_error += std::fabs(f.gain);
  return bound;
}

// t = exp(-|x|), 1 / (1 + t), t / (1 + t), t / (1 + t)^2: the error of t, three
// roundings in the value and six in the derivative. |w''| <= |w'|, which grows
// by at most exp(error) within the error.
WeightBound sigmoid_bound(const Activation& f, double x, double error,
                          const Precision& r) {
  const double w = f.weight(x, 1), dw = f.weight_derivative(x, 1);
  const double moved = std::fabs(dw) * std::expm1(error);
  const double flushed = std::fabs(f.gain) * r.tiny;
  return {w, dw, moved + (kExp2 + 3) * r.u * std::fabs(w) + flushed,
          moved + (kExp2 + 6) * r.u * std::fabs(dw) + flushed};
}

struct Key {
  std::int64_t j;
  double score, score_error;
  double kept;  // what dropout multiplies the weight by
  WeightBound weight;
};

struct Row {
  std::int64_t b, h, i;
  Sequence seq;
  std::vector<Key> keys;
  double shift = 0, shift_error = 0;
  double c = 0;        // the row scale
  double c_error = 0;  // relative
  double worst_score_error = 0;

  double far_c() const { return c * (1 + c_error); }
  // A sum of weights that rounding may make zero: anything can come of it.
  bool lost() const { return c_error == kInf; }
  double n() const { return static_cast<double>(keys.size()); }
  std::int64_t q_row() const { return seq.q_begin + i; }
};

// A tensor in double, dense.
struct Dense {
  explicit Dense(const ConstTensor& t)
      : size(t.size), value(static_cast<std::size_t>(element_count(t.size))) {
    std::size_t next = 0;
    for_each_index(size, [&](const Extents& x) { value[next++] = at(t, x); });
  }
  double* row(std::int64_t batch, std::int64_t head, std::int64_t i) {
    return value.data() + ((batch * size[1] + head) * size[2] + i) * size[3];
  }
  void store(Buffer& to) const {
    std::size_t next = 0;
    for_each_index(size, [&](const Extents& x) { to.set(x, value[next++]); });
  }
  Extents size;
  std::vector<double> value;
};

// Sums over the products of two rows.
struct Dot {
  Dot(const double* x, const double* y, std::int64_t width) {
    for (std::int64_t c = 0; c < width; ++c) {
      value += x[c] * y[c];
      absolute += std::fabs(x[c] * y[c]);
      y_absolute += std::fabs(y[c]);
    }
  }
  double value = 0, absolute = 0, y_absolute = 0;
};

class Bounds {
 public:
  Bounds(const Instance& instance, const Outputs& want, DType storage)
      : p_(check_problem("error_bound", instance.inputs(), instance.config())),
        r_(p_),
        want_(want),
        storage_(storage),
        q_(p_.in.q),
        k_(p_.in.k),
        v_(p_.in.v),
        d_o_(instance.d_o.tensor),
        o_(want.o.tensor),
        o_error_(zeros(want.o)),
        dq_error_(zeros(want.dq)),
        dk_error_(zeros(want.dk)),
        dv_error_(zeros(want.dv)),
        d_bias_error_(zeros(want.d_bias)),
        bound_(instance.outputs(DType::kF64)) {
    const std::int64_t blocks = p_.m / kLeastKeyBlock + 1;
    key_blocks_ = static_cast<double>(blocks);
  }

  Outputs run() {
    for (std::int64_t b = 0; b < p_.batch; ++b) {
      for (std::int64_t h = 0; h < p_.heads; ++h) {
        AttentionStats& stats = bound_.stats[index(b * p_.heads + h)];
        stats = {};
        for (std::int64_t i = 0; i < p_.sequence(b).n; ++i) {
          Row row{b, h, i, p_.sequence(b), {}};
          find_scores(row);
          find_weights(row);
          find_scale(row);
          if (row.lost()) {
            give_up(row, stats);
            continue;
          }
          forward(row);
          backward(row);
          add_stats(row, stats);
        }
      }
    }
    finish(o_error_, want_.o, bound_.o);
    finish(dq_error_, want_.dq, bound_.dq);
    finish(dk_error_, want_.dk, bound_.dk);
    finish(dv_error_, want_.dv, bound_.dv);
    finish(d_bias_error_, want_.d_bias, bound_.d_bias);
    return std::move(bound_);
  }

 private:
  static std::size_t index(std::int64_t i) {
    return static_cast<std::size_t>(i);
  }
  static Dense zeros(const Buffer& like) {
    Dense dense(like.tensor);
    std::fill(dense.value.begin(), dense.value.end(), 0.0);
    return dense;
  }
  bool sum() const { return p_.activation.divisor == Divisor::kSum; }
  bool softmax() const {
    return p_.activation.kind == ActivationKind::kSoftmax;
  }
  double* key_row(Dense& x, const Row& row, std::int64_t j) const {
    return x.row(row.seq.batch, p_.kv_head(row.h), row.seq.k_begin + j);
  }
  double& bias_entry(const Row& row, std::int64_t j) {
    const auto at = [&](std::size_t i, std::int64_t x) {
      return x % p_.in.bias->size[i];
    };
    return d_bias_error_.row(at(0, row.b), at(1, row.h),
                             at(2, row.i))[at(3, j)];
  }
  // How many entries of A an entry of the bias is added to, at most.
  double bias_terms() const {
    const Extents full = {p_.batch, p_.heads, p_.n, p_.m};
    double terms = 1;
    for (std::size_t i = 0; i < 4; ++i)
      terms *= static_cast<double>(full[i] / p_.in.bias->size[i]);
    return terms;
  }
  double* query_row(Dense& x, const Row& row) const {
    return x.row(row.seq.batch, row.h, row.q_row());
  }

  bool seen(const Row& row, std::int64_t j, double& bias) const {
    const auto& in = p_.in;
    const auto offset = [&](const auto& t) {
      return broadcast_offset(t.size, t.stride, row.b, row.h, row.i, j);
    };
    if (in.mask && in.mask->data[offset(*in.mask)] == 0) return false;
    bias = in.bias
               ? load_element(in.bias->data, in.bias->dtype, offset(*in.bias))
               : 0;
    return bias != -kInf;
  }

  // The factor of the weights that are kept, here and in the reference.
  double kept_roundings() const { return p_.dropout.p > 0 ? 4 : 0; }

  double kept(const Row& row, std::int64_t j) const {
    if (p_.dropout.p == 0) return 1;
    return is_dropped(p_.dropout, row.b, row.h, row.i, j)
               ? 0
               : kept_factor(p_.dropout);
  }

  // D products, and three roundings: scale, q times scale, the bias added.
  void find_scores(Row& row) {
    const double* q = query_row(q_, row);
    const double size = std::fabs(p_.scale);
    const double roundings = (static_cast<double>(p_.d) + 4) * r_.u + 2 * r_.in;
    const KeyRange keys = p_.keys_of(row.seq, row.i);
    for (std::int64_t j = keys.begin; j < keys.end; ++j) {
      double bias = 0;
      if (!seen(row, j, bias)) continue;
      const Dot dot(q, key_row(k_, row, j), p_.d);
      Key key{j, p_.scale * dot.value + bias, 0, kept(row, j), {}};
      key.score_error = size * dot.absolute * roundings +
                        std::fabs(bias) * (3 * r_.u + r_.in) +
                        r_.tiny * (1 + dot.y_absolute);
      row.worst_score_error = std::max(row.worst_score_error, key.score_error);
      row.keys.push_back(key);
    }
  }

  // exp(s - shift), where the shift is the same for all keys and cancels: what
  // remains is the rounding of the differences, which add up to u (top - s)
  // however often the top moves; a factor for every move; and in backward the
  // shift that comes back from the row state.
  WeightBound exp_bound(const Row& row, const Key& key) const {
    const double below = row.shift - key.score, w = std::exp(-below);
    const double error =
        key.score_error + r_.u * (below + kExp2 + (kExp2 + 1) * key_blocks_ +
                                  3 * std::fabs(row.shift));
    const double w_error = w * std::expm1(error) + r_.tiny;
    return {w, w, w_error, w_error};
  }

  void find_weights(Row& row) const {
    const Activation& f = p_.activation;
    if (row.keys.empty()) return;
    if (softmax()) {
      row.shift = -kInf;
      for (const Key& key : row.keys)
        row.shift = std::max(row.shift, key.score);
      row.shift_error = row.worst_score_error + 3 * r_.u * std::fabs(row.shift);
    } else if (f.log_n_bias) {
      row.shift = std::log(row.n());
      row.shift_error = 2 * 0x1p-53 * row.shift;
    }
    for (Key& key : row.keys) {
      const double x = key.score - row.shift;
      const double moved =  // the shift rounded, then subtracted
          row.shift == 0 ? 0 : r_.u * (2 * row.shift + std::fabs(x));
      const double error = key.score_error + moved;
      key.weight = f.kind == ActivationKind::kSoftmax ? exp_bound(row, key)
                   : f.kind == ActivationKind::kPolynomial
                       ? polynomial_bound(f, x, error, r_)
                   : f.kind == ActivationKind::kRelu
                       ? relu_bound(f, x, error, r_)
                       : sigmoid_bound(f, x, error, r_);
    }
  }

  // `sum` is added up in T within a block of keys, then in double.
  double sum_roundings(const Row& row) const {
    return (row.n() + key_blocks_ + 1) * r_.u;
  }

  void find_scale(Row& row) const {
    if (row.keys.empty()) return;
    row.c = p_.activation.row_scale(row.n());
    if (!sum()) return;
    double z = 0, error = 0;
    for (const Key& key : row.keys) {
      z += std::fabs(key.weight.w);
      error += key.weight.w_error;
    }
    row.c = z == 0 ? 0 : 1 / z;
    if (error == 0) return;
    const double off = error / z + sum_roundings(row);
    row.c_error = off < 1 ? off / (1 - off) : kInf;
  }

  void give_up(const Row& row, AttentionStats& stats) {
    std::fill_n(query_row(o_error_, row), p_.e, kInf);
    std::fill_n(query_row(dq_error_, row), p_.d, kInf);
    for (const Key& key : row.keys) {
      std::fill_n(key_row(dk_error_, row, key.j), p_.d, kInf);
      std::fill_n(key_row(dv_error_, row, key.j), p_.e, kInf);
      if (p_.in.bias) bias_entry(row, key.j) = kInf;
    }
    bound_.rows[index(p_.row_index(row.b, row.h, row.i))] = {kInf, kInf};
    stats = {kInf, kInf, kInf, 0};
  }

  void forward(const Row& row) {
    double* error = query_row(o_error_, row);
    const double* o = query_row(o_, row);
    const double products =
        (row.n() + 1 + key_blocks_ + kept_roundings()) * r_.u + r_.in;
    const double scale = row.c_error + kScaleRoundings * r_.u;
    for (const Key& key : row.keys) {
      const double* v = key_row(v_, row, key.j);
      const double factor =
          row.far_c() * key.kept *
          (key.weight.w_error + std::fabs(key.weight.w) * products);
      for (std::int64_t c = 0; c < p_.e; ++c)
        error[c] += factor * std::fabs(v[c]);
    }
    for (std::int64_t c = 0; c < p_.e; ++c)
      error[c] += scale * std::fabs(o[c]) + r_.tiny * row.n();
    const std::int64_t at = p_.row_index(row.b, row.h, row.i);
    const double shifted = softmax() ? std::expm1(row.shift_error) : 0;
    bound_.rows[index(at)] = {
        kSlack * row.shift_error,
        kSlack * row.c * (row.c_error + shifted + 4 * 0x1p-53)};
  }

  // delta = c o.d_o with the stored o, and its error.
  struct Pull {
    double value = 0, error = 0;
  };
  Pull find_pull(const Row& row) {
    if (!sum()) return {};
    const double* o = query_row(o_, row);
    const double* o_error = query_row(o_error_, row);
    const double* d_o = query_row(d_o_, row);
    const double roundings = (static_cast<double>(p_.e) + 2) * r_.u + r_.in;
    Pull pull;
    for (std::int64_t c = 0; c < p_.e; ++c) {
      const double off = o_error[c] + r_.in * std::fabs(o[c]) +
                         storage_error(o[c], storage_, p_.compute);
      pull.value += row.c * o[c] * d_o[c];
      pull.error +=
          row.far_c() * std::fabs(d_o[c]) * (off + roundings * std::fabs(o[c]));
    }
    pull.error += std::fabs(pull.value) * (row.c_error + 4 * r_.u);
    return pull;
  }

  // dL/ds of one key.
  Pull score_gradient(const Row& row, const Key& key, const Pull& pull) {
    const Dot dot(query_row(d_o_, row), key_row(v_, row, key.j), p_.e);
    const WeightBound& w = key.weight;
    const double sign = sum() ? (w.w > 0) - (w.w < 0) : 0;
    const double c = row.c * key.kept, far_c = row.far_c() * key.kept;
    const double h = c * dot.value - sign * pull.value;
    double h_error = far_c * dot.absolute *
                         ((static_cast<double>(p_.e) + 2) * r_.u + 2 * r_.in) +
                     c * std::fabs(dot.value) *
                         (row.c_error + (2 + kept_roundings()) * r_.u) +
                     pull.error + r_.u * std::fabs(h) + r_.tiny;
    if (std::fabs(w.w) <= w.w_error) h_error += 2 * std::fabs(pull.value);
    return {w.dw * h, w.dw_error * (std::fabs(h) + h_error) +
                          std::fabs(w.dw) * (h_error + r_.u * std::fabs(h))};
  }

  void backward(const Row& row) {
    const double* q = query_row(q_, row);
    const double* d_o = query_row(d_o_, row);
    double* dq_error = query_row(dq_error_, row);
    const std::int64_t terms = p_.heads / p_.kv_heads * p_.n + 1;
    const double rows = static_cast<double>(terms) * r_.u;
    const double size = std::fabs(p_.scale);
    const Pull pull = find_pull(row);
    for (const Key& key : row.keys) {
      const Pull ds = score_gradient(row, key, pull);
      const double* k = key_row(k_, row, key.j);
      double* dk_error = key_row(dk_error_, row, key.j);
      double* dv_error = key_row(dv_error_, row, key.j);
      const double q_factor =
          ds.error + std::fabs(ds.value) * ((row.n() + 3) * r_.u + r_.in);
      const double k_factor =
          ds.error + std::fabs(ds.value) * (rows + 3 * r_.u + r_.in);
      for (std::int64_t c = 0; c < p_.d; ++c) {
        dq_error[c] += size * q_factor * std::fabs(k[c]) + r_.tiny;
        dk_error[c] += size * k_factor * std::fabs(q[c]) + r_.tiny;
      }
      const double v_factor =
          row.far_c() * key.kept *
          (key.weight.w_error +
           std::fabs(key.weight.w) *
               (row.c_error + rows + (3 + kept_roundings()) * r_.u + r_.in));
      for (std::int64_t c = 0; c < p_.e; ++c)
        dv_error[c] += v_factor * std::fabs(d_o[c]) + r_.tiny;
      if (p_.in.bias)
        bias_entry(row, key.j) +=
            ds.error + std::fabs(ds.value) * bias_terms() * r_.u + r_.tiny;
    }
  }

  void add_stats(const Row& row, AttentionStats& stats) const {
    double a2 = 0, a2_error = 0, g2 = 0, g2_error = 0, cross = 0,
           cross_error = 0;
    const double c = row.c, terms = sum_roundings(row) + 4 * r_.u;
    const double scale = row.c_error + kScaleRoundings * r_.u;
    double top = 0;
    for (const Key& key : row.keys) {
      const WeightBound& w = key.weight;
      const double a = c * std::fabs(w.w), g = c * std::fabs(w.dw);
      const double a_error = row.far_c() * w.w_error + a * scale;
      const double g_error = row.far_c() * w.dw_error + g * scale;
      const double g2_off = (2 * g + g_error) * g_error;
      a2 += a * a;
      g2 += g * g;
      cross += g * g * a;
      a2_error += (2 * a + a_error) * a_error;
      g2_error += g2_off;
      cross_error += g2_off * (a + a_error) + g * g * a_error;
      top = std::max(top, std::fabs(key.score));
    }
    a2_error += a2 * terms + r_.tiny;
    g2_error += g2 * terms + r_.tiny;
    cross_error += cross * terms;
    const double jacobian_error =
        sum()
            ? a2_error * (g2 + g2_error) + (1 + a2) * g2_error + 2 * cross_error
            : g2_error;
    stats.weight_sq += kSlack * a2_error;
    stats.jacobian_sq += kSlack * jacobian_error;
    stats.max_abs_score = std::max(
        stats.max_abs_score, kSlack * (row.worst_score_error + 2 * r_.u * top));
  }

  void finish(const Dense& error, const Buffer& want, Buffer& bound) const {
    error.store(bound);
    for_each_index(want.tensor.size, [&](const Extents& x) {
      const double off = kSlack * (at(bound.tensor, x) + r_.tiny);
      const double reach = std::fabs(at(want.tensor, x)) + off;
      bound.set(x, off + storage_error(reach, storage_, p_.compute));
    });
  }

  Problem p_;
  Precision r_;
  const Outputs& want_;
  DType storage_;
  double key_blocks_ = 0;
  Dense q_, k_, v_, d_o_, o_, o_error_, dq_error_, dk_error_, dv_error_,
      d_bias_error_;
  Outputs bound_;
};

}  // namespace

double storage_error(double x, DType storage, DType compute) {
  const double size = std::fabs(x);
  const double to_f32 = compute == DType::kF32 ? 0 : size * 0x1p-24 + 0x1p-149;
  switch (storage) {
    case DType::kF64:
      return 0;
    case DType::kF32:
      return to_f32;
    case DType::kBF16:
      return size * 0x1p-8 + 0x1p-133 + to_f32;
    case DType::kF16:
      return size * 0x1p-11 + 0x1p-24 + to_f32;
  }
  return kNaN;
}

Outputs error_bound(const Instance& instance, const Outputs& want,
                    DType storage) {
  return Bounds(instance, want, storage).run();
}

void expect_within(const char* what, const Buffer& got, const Buffer& want,
                   const Buffer& bound) {
  double worst = 0;
  Extents where{};
  for_each_index(want.tensor.size, [&](const Extents& x) {
    const double off = std::fabs(at(got.tensor, x) - at(want.tensor, x));
    if (off <= worst * at(bound.tensor, x)) return;
    worst = std::isnan(off) ? kInf : off / at(bound.tensor, x);
    where = x;
  });
  EXPECT_LE(worst, 1) << what << ::testing::PrintToString(where) << " is "
                      << at(got.tensor, where) << ", not "
                      << at(want.tensor, where) << " within "
                      << at(bound.tensor, where);
}

void expect_sharp(const char* what, const Buffer& want, const Buffer& bound,
                  double ratio) {
  double allowed = 0, size = 0;
  for_each_index(want.tensor.size, [&](const Extents& x) {
    allowed += std::pow(at(bound.tensor, x), 2);
    size += std::pow(at(want.tensor, x), 2);
  });
  EXPECT_LT(allowed, ratio * ratio * size) << what;
}

void expect_rows_within(const Outputs& got, const Outputs& want,
                        const Outputs& bound) {
  for (std::size_t i = 0; i < want.rows.size(); ++i) {
    SCOPED_TRACE("row " + std::to_string(i));
    ASSERT_NEAR(got.rows[i].shift, want.rows[i].shift, bound.rows[i].shift);
    ASSERT_NEAR(got.rows[i].scale, want.rows[i].scale, bound.rows[i].scale);
  }
}

void expect_stats_within(const Outputs& got, const Outputs& want,
                         const Outputs& bound) {
  for (std::size_t i = 0; i < want.stats.size(); ++i) {
    SCOPED_TRACE("head " + std::to_string(i));
    const AttentionStats &g = got.stats[i], &w = want.stats[i];
    const AttentionStats& b = bound.stats[i];
    ASSERT_NEAR(g.weight_sq, w.weight_sq, b.weight_sq);
    ASSERT_NEAR(g.jacobian_sq, w.jacobian_sq, b.jacobian_sq);
    ASSERT_NEAR(g.max_abs_score, w.max_abs_score, b.max_abs_score);
    ASSERT_EQ(g.non_finite, w.non_finite);
  }
}

}  // namespace polyattn::test
