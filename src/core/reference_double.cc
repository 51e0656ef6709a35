// The derivative of the gradients, one row at a time, in double precision:
// docs/kernels.md derives it. For a divisor other than `sum` the three sums of
// a row are zero.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/problem.h"
#include "core/reference_row.h"
#include "polyattn/reference.h"

namespace polyattn {
namespace {

using reference::dot;
using reference::for_each_row;
using reference::key_offset;
using reference::Place;
using reference::query_offset;
using reference::Row;
using reference::Sum;
using Optional = std::optional<ConstTensor>;

// For each key that a row sees.
struct Keys {
  std::vector<double>
      t;  // what its score changes by: scale (uq.k + q.uk) + u_b
  std::vector<double> p;  // dL/dA of the first derivative: d_o.v
  std::vector<double> w;  // d_o.uv
};

double dot_if(const Optional& x, const Optional& y, const Problem& p, Place at,
              std::int64_t j) {
  if (!x || !y) return 0;
  return dot(*x, query_offset(p, x->stride, at), *y,
             key_offset(p, y->stride, at, j));
}

Keys find_keys(const Problem& p, const AttentionDoubleInputs& in, Place at,
               const Row& row) {
  Keys keys;
  for (std::size_t x = 0; x < row.key.size(); ++x) {
    const std::int64_t j = row.key[x];
    double t = p.scale * (dot_if(in.uq, p.in.k, p, at, j) +
                          dot_if(p.in.q, in.uk, p, at, j));
    if (in.u_bias)
      t += load_element(in.u_bias->data, in.u_bias->dtype,
                        broadcast_offset(in.u_bias->size, in.u_bias->stride,
                                         at.b, at.h, at.i, j));
    keys.t.push_back(t);
    keys.p.push_back(row.kept[x] * dot_if(in.d_o, p.in.v, p, at, j));
    keys.w.push_back(row.kept[x] * dot_if(in.d_o, in.uv, p, at, j));
  }
  return keys;
}

double sign_of(double w) { return (w > 0) - (w < 0); }

// What the common divisor pulls on: t = sum |slope| t_j, the change of log z;
// delta = sum A p; rho = sum (slope t p + A w) - 2 delta t.
struct Pull {
  double t = 0, delta = 0, rho = 0;
};

Pull find_pull(const Problem& p, const Row& row, const Keys& keys) {
  Pull pull;
  if (p.activation.divisor != Divisor::kSum) return pull;
  for (std::size_t x = 0; x < row.key.size(); ++x) {
    pull.t += row.slope[x] * sign_of(row.weight[x]) * keys.t[x];
    pull.delta += row.attention[x] * keys.p[x];
    pull.rho += row.slope[x] * keys.t[x] * keys.p[x];
    pull.rho += row.attention[x] * keys.w[x];
  }
  pull.rho -= 2 * pull.delta * pull.t;
  return pull;
}

struct Sums {
  Sum d_o, dq, dk, dv, d_bias;
};

void add_row(const Problem& p, const AttentionDoubleInputs& in, Place at,
             const Row& row, Sums& sums) {
  const Keys keys = find_keys(p, in, at, row);
  const Pull pull = find_pull(p, row, keys);
  const auto add_query = [&](Sum& to, double factor, const Optional& from,
                             std::int64_t j) {
    if (from)
      to.add(query_offset(p, to.stride, at), factor, *from,
             key_offset(p, from->stride, at, j));
  };
  const auto add_key = [&](Sum& to, double factor, const Optional& from,
                           std::int64_t j) {
    if (from)
      to.add(key_offset(p, to.stride, at, j), factor, *from,
             query_offset(p, from->stride, at));
  };
  for (std::size_t x = 0; x < row.key.size(); ++x) {
    const std::int64_t j = row.key[x];
    const double sign = sign_of(row.weight[x]);
    const double h = keys.p[x] - sign * pull.delta;
    // What A changes by, dL/ds of the first derivative, and of this one.
    const double change = row.slope[x] * keys.t[x] - row.attention[x] * pull.t;
    const double ds = row.slope[x] * h;
    const double g =
        row.curvature[x] * keys.t[x] * h +
        row.slope[x] * (keys.w[x] - pull.t * keys.p[x] - sign * pull.rho);
    add_query(sums.d_o, row.kept[x] * change, p.in.v, j);
    add_query(sums.d_o, row.kept[x] * row.attention[x], in.uv, j);
    add_query(sums.dq, p.scale * g, p.in.k, j);
    add_query(sums.dq, p.scale * ds, in.uk, j);
    add_key(sums.dk, p.scale * g, p.in.q, j);
    add_key(sums.dk, p.scale * ds, in.uq, j);
    add_key(sums.dv, row.kept[x] * change, in.d_o, j);
    if (p.in.bias)
      sums.d_bias.value[static_cast<std::size_t>(broadcast_offset(
          sums.d_bias.size, sums.d_bias.stride, at.b, at.h, at.i, j))] += g;
  }
}

}  // namespace

void reference_double_backward(const AttentionInputs& inputs,
                               const AttentionConfig& config,
                               const AttentionDoubleInputs& second,
                               const AttentionDoubleGradients& gradients) {
  constexpr char kOp[] = "reference_double_backward";
  const Problem p = check_problem(kOp, inputs, config);
  check_double_backward(kOp, p, second, gradients);
  const Extents& q = inputs.q.size;
  Sums sums{Sum({q[0], q[1], q[2], p.e}), Sum(q), Sum(inputs.k.size),
            Sum(inputs.v.size),
            Sum(inputs.bias ? inputs.bias->size : Extents{})};
  for_each_row(
      p, [&](Place at, const Row& row) { add_row(p, second, at, row, sums); });
  sums.d_o.store(gradients.d_o);
  sums.dq.store(gradients.dq);
  sums.dk.store(gradients.dk);
  sums.dv.store(gradients.dv);
  sums.d_bias.store(gradients.d_bias);
}

}  // namespace polyattn
