// The reference against numbers worked out by hand, against finite differences
// of itself, and against the same call said in another way.
#include "polyattn/reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/finite_difference.h"
#include "core/problem.h"
#include "core/random_inputs.h"

namespace polyattn::test {
namespace {

const std::vector<std::string> kFormulas = {
    "softmax",    "x^3",       "x^3/sqrt(N)", "1 + x + x^2/2",
    "x^3/sum",    "(1 + x)/N", "sigmoid",     "2*sigmoid(x)/sqrt(N)",
    "relu^2/N",   "relu",      "relu/sum",    "-3*relu^3/sum",
    "sigmoid/sum"};

struct ByHand {
  const char* formula;
  double o, weight_sq, jacobian_sq, shift, scale;
};

// One query, scores 1 and -2, values 3 and 5.
TEST(Reference, TinyRowsByHand) {
  const double e = std::exp(1.0), p = e * e * e / (e * e * e + 1);
  const double a = e / (e + 2), b = 1 / (1 + 2 * e * e);
  const double pq = p * (1 - p), da = a * (1 - a), db = b * (1 - b);
  const ByHand list[] = {
      {"softmax", 3 * p + 5 * (1 - p), p * p + (1 - p) * (1 - p), 4 * pq * pq,
       1, p},
      {"x^3", -37, 65, 153, 0, 1},
      {"x^3/sqrt(N)", -37 / std::sqrt(2.0), 32.5, 76.5, 0, std::sqrt(0.5)},
      {"x^3/N", -18.5, 16.25, 38.25, 0, 0.5},
      {"x^3/sum", -37. / 9, 65. / 81, 160. / 729, 0, 1. / 9},
      {"1 + x + x^2/2", 12.5, 7.25, 5, 0, 1},
      {"sigmoid", 3 * a + 5 * b, a * a + b * b, da * da + db * db,
       std::log(2.0), 1},
      {"relu^2/N", 1.5, 0.25, 1, 0, 0.5},
      {"relu/sum", 3, 1, 0, 0, 1},
  };
  for (const ByHand& want : list) {
    SCOPED_TRACE(want.formula);
    const double q = 1, k[] = {1, -2}, v[] = {3, 5};
    double o = kNaN;
    RowState row;
    AttentionStats stats;
    AttentionInputs in;
    in.q = view(&q, {1, 1, 1, 1});
    in.k = view(k, {1, 1, 2, 1});
    in.v = view(v, {1, 1, 2, 1});
    AttentionConfig config;
    config.activation = Activation::parse(want.formula);
    reference_forward(in, config,
                      {view(&o, {1, 1, 1, 1}), {&row, 1}, {&stats, 1}});
    // A dozen roundings of terms that are at most 40 times their result.
    const auto near = [](double x) { return 500 * kEps * (1 + std::fabs(x)); };
    EXPECT_NEAR(o, want.o, near(want.o));
    EXPECT_NEAR(row.shift, want.shift, near(want.shift));
    EXPECT_NEAR(row.scale, want.scale, near(want.scale));
    EXPECT_NEAR(stats.weight_sq, want.weight_sq, near(want.weight_sq));
    EXPECT_NEAR(stats.jacobian_sq, want.jacobian_sq, near(want.jacobian_sq));
    EXPECT_EQ(stats.max_abs_score, 2);
    EXPECT_EQ(stats.non_finite, 0);
  }
}

// Every feature, small enough for four evaluations per input element.
std::vector<Case> small_cases() {
  const Case base{.n = 3, .m = 4, .d = 2, .e = 2, .dtype = DType::kF64};
  std::vector<Case> list(16, base);
  list[1].causal = Causal::kFirst;
  list[2].causal = Causal::kLast;
  list[3].mask = Extra::kFull;
  list[4].bias = Extra::kFull;
  list[5].batch = 2, list[5].heads = 4, list[5].kv_heads = 2;
  list[6].q_lengths = {2, 0, 1, 3}, list[6].k_lengths = {3, 2, 0, 4};
  list[7].mask = Extra::kPadding, list[7].bias = Extra::kHeads;
  list[7].batch = 2, list[7].causal = Causal::kLast;
  list[8].strided = true, list[8].heads = 2, list[8].scale = -0.75;
  list[9] = list[6], list[9].heads = 2, list[9].mask = Extra::kRows;
  list[9].bias = Extra::kQueries, list[9].causal = Causal::kFirst;
  list[10].batch = list[10].heads = 2, list[10].bias = Extra::kOne;
  list[11].batch = 4, list[11].bias = list[11].mask = Extra::kCycle;
  list[12] = list[9], list[12].dropout = 0.4;
  list[13].window = {1, 0};
  list[14] = list[9], list[14].window = {0, -1};
  list[15].window = {1, 1}, list[15].causal = Causal::kLast;
  return list;
}

// Every formula in every small case.
template <typename Body>
void for_each_case(const Body& body) {
  for (Case c : small_cases()) {
    for (const std::string& formula : kFormulas) {
      c.formula = formula;
      SCOPED_TRACE(::testing::PrintToString(c));
      body(c);
    }
  }
}

TEST(Reference, GradientsAreFiniteDifferences) {
  for_each_case([](const Case& c) {
    Instance instance(c);
    const Outputs out = instance.reference();
    expect_gradient(instance, instance.q, out.dq.tensor);
    expect_gradient(instance, instance.k, out.dk.tensor);
    expect_gradient(instance, instance.v, out.dv.tensor);
    if (c.bias != Extra::kAbsent)
      expect_gradient(instance, instance.bias, out.d_bias.tensor);
  });
}

// What row (b, h, i) sees, by the words of attention.h. A score is a sum of D
// products, times the scale, plus the bias. Each of these terms is rounded at
// most D + 2 times, so that a score is off by at most (D + 2) kEps/2 times the
// sum of their sizes; slack is twice that. A compiler may fuse products and
// sums, and not the same ones here and in the reference.
struct PlainRow {
  std::vector<std::int64_t> key;
  std::vector<double> score, slack;
};

PlainRow plain_row(const Instance& instance, const Case& c, std::int64_t b,
                   std::int64_t h, std::int64_t i) {
  const AttentionInputs in = instance.inputs();
  const double scale =
      c.scale.value_or(1 / std::sqrt(static_cast<double>(c.d)));
  PlainRow row;
  for (std::int64_t j = 0; j < c.m; ++j) {
    if (!sees(c, i, j)) continue;
    double s = 0, sizes = 0;
    for (std::int64_t x = 0; x < c.d; ++x) {
      const double term = at(in.q, {b, h, i, x}) *
                          at(in.k, {b, h / (c.heads / c.kv_heads), j, x});
      s += term, sizes += std::fabs(term);
    }
    s *= scale, sizes *= std::fabs(scale);
    const auto clip = [&](const Extents& size) -> Extents {
      return {b % size[0], std::min(h, size[1] - 1), std::min(i, size[2] - 1),
              std::min(j, size[3] - 1)};
    };
    if (in.mask &&
        in.mask->data[offset_of(in.mask->stride, clip(in.mask->size))] == 0) {
      continue;
    }
    const double bias = in.bias ? at(*in.bias, clip(in.bias->size)) : 0;
    if (bias == -kInf) continue;
    row.key.push_back(j);
    row.score.push_back(s + bias);
    row.slack.push_back(static_cast<double>(c.d + 2) * kEps *
                        (sizes + std::fabs(bias)));
  }
  return row;
}

// With the identity as values the output is the attention matrix itself.
Instance& with_identity(Instance& instance) {
  for_each_index(instance.v.tensor.size, [&](const Extents& x) {
    instance.v.set(x, x[2] == x[3] ? 1 : 0);
  });
  return instance;
}

double divisor_of(const Activation& f, const std::vector<double>& score) {
  const auto n = static_cast<double>(score.size());
  if (f.divisor != Divisor::kSum) return 1 / f.row_scale(n);
  double sum = 0;
  for (const double s : score) sum += std::fabs(f.weight(s, n));
  return sum;
}

// The squared norm of dA_j/ds_k, entry by entry.
double jacobian_sq(const Activation& f, const std::vector<double>& score) {
  const auto n = static_cast<double>(score.size());
  const double z = divisor_of(f, score);
  double sum = 0;
  for (std::size_t j = 0; j < score.size() && z != 0; ++j) {
    for (std::size_t k = 0; k < score.size(); ++k) {
      const double w_k = f.weight(score[k], n);
      // dz/ds_k, as a multiple of w'_k.
      const double sign =
          f.divisor == Divisor::kSum ? (w_k > 0) - (w_k < 0) : 0;
      const double entry = f.weight_derivative(score[k], n) / z *
                           ((j == k) - f.weight(score[j], n) / z * sign);
      sum += entry * entry;
    }
  }
  return sum;
}

// How far value(scores) may be off, to first order, because of their slack.
template <typename Value>
double spread(const PlainRow& row, const Value& value) {
  const double here = value(row.score);
  double sum = 0;
  for (std::size_t k = 0; k < row.score.size(); ++k) {
    std::vector<double> up = row.score, down = row.score;
    up[k] += row.slack[k], down[k] -= row.slack[k];
    sum += std::max(std::fabs(value(up) - here), std::fabs(value(down) - here));
  }
  return sum;
}

void expect_row(const Activation& f, const PlainRow& row, const RowState& state,
                const std::vector<double>& attention) {
  const auto n = static_cast<double>(row.key.size());
  std::vector<double> want(attention.size()), tolerance(attention.size());
  for (std::size_t x = 0; x < row.key.size(); ++x) {
    const auto entry = [&](const std::vector<double>& score) {
      const double divisor = divisor_of(f, score);
      return divisor == 0 ? 0 : f.weight(score[x], n) / divisor;
    };
    const double a = entry(row.score);
    const double near = 64 * kEps * std::fabs(a) + spread(row, entry);
    want[static_cast<std::size_t>(row.key[x])] = a;
    tolerance[static_cast<std::size_t>(row.key[x])] = near;
    EXPECT_LT(near, 1e-12 * (1 + std::fabs(a)));
    EXPECT_NEAR(state.scale * f.weight(row.score[x] - state.shift, 1), a, near);
  }
  for (std::size_t j = 0; j < want.size(); ++j) {
    EXPECT_NEAR(attention[j], want[j], tolerance[j]);
  }
}

TEST(Reference, MatrixAndRowStateByDefinition) {
  for_each_case([](Case c) {
    if (!c.q_lengths.empty() || c.dropout > 0) return;
    c.e = c.m;
    Instance instance(c);
    const Outputs out = with_identity(instance).reference();
    for_each_index({c.batch, c.heads, c.n, 1}, [&](const Extents& x) {
      std::vector<double> attention;
      for (std::int64_t j = 0; j < c.m; ++j) {
        attention.push_back(at(out.o.tensor, {x[0], x[1], x[2], j}));
      }
      const std::int64_t index = (x[0] * c.heads + x[1]) * c.n + x[2];
      expect_row(Activation::parse(c.formula),
                 plain_row(instance, c, x[0], x[1], x[2]),
                 out.rows[static_cast<std::size_t>(index)], attention);
    });
  });
}

// The reference has the Jacobian of a row divided by its sum as a difference,
// which may cancel, of terms that together are at most 4 sum (w'/z)^2. Each is
// a product of four quotients w'/z or w/z, of at most 10 roundings above and 15
// below, and a few sums: it is rounded at most 128 times, and so is an entry.
double jacobian_tolerance(const Activation& f, const PlainRow& row) {
  const auto n = static_cast<double>(row.score.size());
  const double z = divisor_of(f, row.score);
  double terms = 0;
  for (const double s : row.score) {
    terms += z == 0 ? 0 : 4 * std::pow(f.weight_derivative(s, n) / z, 2);
  }
  return 128 * kEps * terms +
         spread(row, [&](const auto& score) { return jacobian_sq(f, score); });
}

TEST(Reference, StatsByDefinition) {
  for_each_case([](Case c) {
    if (!c.q_lengths.empty() || c.dropout > 0) return;
    c.e = c.m;
    Instance instance(c);
    const Outputs out = with_identity(instance).reference();
    for_each_index({c.batch, c.heads, 1, 1}, [&](const Extents& x) {
      const Activation f = Activation::parse(c.formula);
      AttentionStats want;
      double jacobian_near = 0;
      for (std::int64_t i = 0; i < c.n; ++i) {
        const PlainRow row = plain_row(instance, c, x[0], x[1], i);
        want.jacobian_sq += jacobian_sq(f, row.score);
        jacobian_near += jacobian_tolerance(f, row);
        for (const double s : row.score) {
          want.max_abs_score = std::max(want.max_abs_score, std::fabs(s));
        }
        for (std::int64_t j = 0; j < c.m; ++j) {
          want.weight_sq += std::pow(at(out.o.tensor, {x[0], x[1], i, j}), 2);
        }
      }
      const auto& got =
          out.stats[static_cast<std::size_t>(x[0] * c.heads + x[1])];
      const auto near = [](double y) { return 256 * kEps * (1 + y); };
      EXPECT_NEAR(got.weight_sq, want.weight_sq, near(want.weight_sq));
      EXPECT_NEAR(got.jacobian_sq, want.jacobian_sq, jacobian_near);
      EXPECT_LT(jacobian_near, 1e-9 * (1 + want.jacobian_sq));
      EXPECT_NEAR(got.max_abs_score, want.max_abs_score,
                  near(want.max_abs_score));
      EXPECT_EQ(got.non_finite, 0);
    });
  });
}

void expect_same(const Buffer& a, const Buffer& b) {
  ASSERT_EQ(a.tensor.size, b.tensor.size);
  for_each_index(a.tensor.size, [&](const Extents& x) {
    EXPECT_EQ(at(a.tensor, x), at(b.tensor, x));
  });
}

void expect_same(const Outputs& a, const Outputs& b) {
  expect_same(a.o, b.o);
  expect_same(a.dq, b.dq);
  expect_same(a.dk, b.dk);
  expect_same(a.dv, b.dv);
}

// j <= i from the first query, or to the last: as a mask, and as -inf.
TEST(Reference, CausalIsAMaskAndMinusInfinityIsToo) {
  for (const std::int64_t m : {3, 5, 8}) {
    for (const Causal causal : {Causal::kFirst, Causal::kLast}) {
      for (const std::string& formula : kFormulas) {
        const Case c{.n = 5, .m = m, .formula = formula, .causal = causal};
        SCOPED_TRACE(::testing::PrintToString(c));
        Case masked = c, biased = c;
        masked.causal = biased.causal = Causal::kNone;
        masked.mask = biased.bias = Extra::kFull;
        Instance with_mask(masked), with_bias(biased);
        const std::int64_t ahead = causal == Causal::kLast ? m - c.n : 0;
        for_each_index({1, 1, c.n, m}, [&](const Extents& x) {
          const bool seen = x[3] <= x[2] + ahead;
          with_mask.mask[static_cast<std::size_t>(x[2] * m + x[3])] = seen;
          with_bias.bias.set(x, seen ? 0 : -kInf);
        });
        const Outputs want = Instance(c).reference();
        expect_same(with_mask.reference(), want);
        expect_same(with_bias.reference(), want);
      }
    }
  }
}

Buffer rows_of(const Buffer& all, std::int64_t first, std::int64_t rows) {
  Extents size = all.tensor.size;
  size[2] = rows;
  Buffer part(all.tensor.dtype, size, contiguous_strides(size));
  for_each_index(size, [&](const Extents& x) {
    part.set(x, at(all.tensor, {x[0], x[1], x[2] + first, x[3]}));
  });
  return part;
}

TEST(Reference, RaggedIsOneCallPerSequence) {
  for (const std::string& formula : kFormulas) {
    const Case c{.heads = 2,
                 .kv_heads = 1,
                 .formula = formula,
                 .causal = Causal::kLast,
                 .q_lengths = {3, 0, 2, 4},
                 .k_lengths = {2, 3, 0, 5}};
    Instance ragged(c);
    const Outputs all = ragged.reference();
    std::int64_t q = 0, k = 0;
    for (std::size_t b = 0; b < c.q_lengths.size(); ++b) {
      Case one = c;
      one.q_lengths = one.k_lengths = {};
      one.n = c.q_lengths[b], one.m = c.k_lengths[b];
      Instance alone(one);
      alone.q = rows_of(ragged.q, q, one.n);
      alone.d_o = rows_of(ragged.d_o, q, one.n);
      alone.k = rows_of(ragged.k, k, one.m);
      alone.v = rows_of(ragged.v, k, one.m);
      const Outputs want = alone.reference();
      expect_same(rows_of(all.o, q, one.n), want.o);
      expect_same(rows_of(all.dq, q, one.n), want.dq);
      expect_same(rows_of(all.dk, k, one.m), want.dk);
      expect_same(rows_of(all.dv, k, one.m), want.dv);
      q += one.n, k += one.m;
    }
  }
}

// Examples b and b + 3 of a batch of 6 share the entries of a mask and a bias.
TEST(Reference, ADivisorOfTheBatchIsRepeated) {
  for (const std::string& formula : kFormulas) {
    SCOPED_TRACE(formula);
    Case c{.batch = 6, .heads = 2, .formula = formula};
    c.mask = c.bias = Extra::kFull;
    Instance full(c);
    c.mask = c.bias = Extra::kCycle;
    const Instance cycle(c);
    ASSERT_EQ(cycle.bias.tensor.size, (Extents{3, 1, 8, 8}));
    for_each_index(full.bias.tensor.size, [&](const Extents& x) {
      const Extents from = {x[0] % 3, 0, x[2], x[3]};
      full.bias.set(x, at(cycle.bias.tensor, from));
      full.mask[static_cast<std::size_t>(
          offset_of(full.inputs().mask->stride, x))] =
          cycle.mask[static_cast<std::size_t>(
              offset_of(cycle.inputs().mask->stride, from))];
    });
    const Outputs got = cycle.reference(), want = full.reference();
    expect_same(got, want);
    for_each_index(cycle.bias.tensor.size, [&](const Extents& x) {
      double sum = 0;
      for (const std::int64_t b : {x[0], x[0] + 3})
        for (const std::int64_t h : {0, 1})
          sum += at(want.d_bias.tensor, {b, h, x[2], x[3]});
      EXPECT_EQ(at(got.d_bias.tensor, x), sum);
    });
  }
}

TEST(Reference, RowsThatSeeNothingAreZero) {
  for (const std::string& formula : kFormulas) {
    SCOPED_TRACE(formula);
    const Case c{.formula = formula, .mask = Extra::kFull};
    Instance instance(c);  // row 1 is masked away
    for (std::size_t i = 0; i < 8; ++i) instance.mask[i * 8 + 5] = 0;
    const Outputs out = instance.reference();
    EXPECT_EQ(out.rows[1].scale, 0);
    EXPECT_EQ(out.rows[1].shift, 0);
    for (std::int64_t x = 0; x < 4; ++x) {
      EXPECT_EQ(at(out.o.tensor, {0, 0, 1, x}), 0);
      EXPECT_EQ(at(out.dq.tensor, {0, 0, 1, x}), 0);
      EXPECT_EQ(at(out.dk.tensor, {0, 0, 5, x}), 0);
      EXPECT_EQ(at(out.dv.tensor, {0, 0, 5, x}), 0);
    }
  }
}

TEST(Reference, ASumOfZeroGivesZeros) {
  for (const char* formula : {"x^3/sum", "x/sum", "relu/sum"}) {
    Instance instance(Case{.formula = formula, .magnitude = 0});
    const Outputs out = instance.reference();
    for (const Buffer* buffer : {&out.o, &out.dq, &out.dk, &out.dv}) {
      for_each_index(buffer->tensor.size, [&](const Extents& x) {
        EXPECT_EQ(at(buffer->tensor, x), 0);
      });
    }
    EXPECT_EQ(out.rows[0].scale, 0);
    EXPECT_EQ(out.stats[0].weight_sq, 0);
    EXPECT_EQ(out.stats[0].jacobian_sq, 0);
  }
}

// Whatever the sizes, everything is written and the gaps are not.
TEST(Reference, WritesAllOfItsOutputsAndNothingElse) {
  const Case base{
      .batch = 2, .heads = 4, .kv_heads = 2, .n = 3, .m = 5, .strided = true};
  std::vector<Case> list(8, base);
  list[1].batch = 0, list[2].n = 0, list[3].m = 0, list[4].d = 0;
  list[5].e = 0, list[6].heads = list[6].kv_heads = 0;
  list[7].q_lengths = {0, 2}, list[7].k_lengths = {3, 0};
  for (Case& c : list) {
    for (const std::string& formula : kFormulas) {
      c.formula = formula;
      SCOPED_TRACE(::testing::PrintToString(c));
      const Outputs out = Instance(c).reference();
      for (const Buffer* buffer : {&out.o, &out.dq, &out.dk, &out.dv}) {
        EXPECT_TRUE(buffer->padding_untouched());
        for_each_index(buffer->tensor.size, [&](const Extents& x) {
          EXPECT_TRUE(std::isfinite(at(buffer->tensor, x)));
        });
      }
      for (const RowState& row : out.rows) EXPECT_FALSE(std::isnan(row.scale));
      for (const AttentionStats& s : out.stats) EXPECT_EQ(s.non_finite, 0);
    }
  }
}

TEST(Reference, NanBiasIsSeenAndCounted) {
  const Case c{.n = 2, .formula = "x^2", .bias = Extra::kFull};
  Instance instance(c);
  instance.bias.set({0, 0, 1, 3}, kNaN);
  const Outputs out = instance.reference();
  for (std::int64_t x = 0; x < c.e; ++x) {
    EXPECT_TRUE(std::isfinite(at(out.o.tensor, {0, 0, 0, x})));
    EXPECT_TRUE(std::isnan(at(out.o.tensor, {0, 0, 1, x})));
  }
  EXPECT_EQ(out.stats[0].non_finite, c.e);
}

// 300^2 is finite in f64 but not in f16: what counts is what is stored.
TEST(Reference, CountsWhatOverflowsInStorage) {
  Instance instance(Case{.n = 1, .m = 1, .d = 1, .e = 3, .formula = "x^2"});
  instance.q.set({0, 0, 0, 0}, 300);
  instance.k.set({0, 0, 0, 0}, 1);
  for (std::int64_t x = 0; x < 3; ++x) {
    instance.v.set({0, 0, 0, x}, x == 1 ? 0.5 : 1);
  }
  Outputs out = instance.outputs(DType::kF16);
  reference_forward(instance.inputs(), instance.config(), out.results());
  EXPECT_EQ(out.stats[0].non_finite, 2);
  EXPECT_EQ(at(out.o.tensor, {0, 0, 0, 1}), 45000 - 45000 % 32);
}

}  // namespace
}  // namespace polyattn::test
