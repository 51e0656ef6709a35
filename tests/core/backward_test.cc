// The backward kernels against the reference, within the error that rounding
// can explain.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/compare_outputs.h"
#include "core/error_bound.h"
#include "core/kernel_cases.h"
#include "core/random_inputs.h"

namespace polyattn::test {
namespace {

void expect_right(const Case& c, const std::vector<std::string>& targets) {
  SCOPED_TRACE(::testing::PrintToString(c));
  const Instance instance(c);
  const Outputs want = instance.reference();
  const Outputs bound = error_bound(instance, want, c.dtype);
  for_each_target(targets, [&](const std::string&) {
    expect_gradients(run_kernels(instance, c.dtype), want, bound);
  });
}

class Backward : public EveryFormula {};

INSTANTIATE_TEST_SUITE_P(Formula, Backward, ::testing::Range(0, kFormulaCount));

TEST_P(Backward, EveryStructureTypeAndTarget) {
  for (const Case& c : structure_cases(GetParam()))
    expect_right(c, supported_targets());
}

TEST_P(Backward, TheBoundIsSharp) {
  for (const DType type : {DType::kF32, DType::kF64}) {
    const Case c{.n = 63,
                 .m = 97,
                 .d = 16,
                 .e = 16,
                 .formula = formula(),
                 .bias = Extra::kFull,
                 .dtype = type,
                 .compute = type};
    const Instance instance(c);
    const Outputs want = instance.reference();
    const Outputs bound = error_bound(instance, want, type);
    const double ratio = type == DType::kF32 ? 0x1p-10 : 0x1p-39;
    expect_sharp("dq", want.dq, bound.dq, ratio);
    expect_sharp("dk", want.dk, bound.dk, ratio);
    expect_sharp("dv", want.dv, bound.dv, ratio);
    expect_sharp("d_bias", want.d_bias, bound.d_bias, ratio);
  }
}

TEST_P(Backward, AwkwardShapes) {
  for (const Case& c : awkward_cases(GetParam()))
    expect_right(c, targets_for(c));
}

// Of 8 or 16 lanes: a last strip that is split, by every structure; of 20 none
// is. Gradients of 16 columns are summed where they are wanted, of 13 not.
TEST_P(Backward, AVectorOfRowsAndFewMore) {
  int turn = GetParam();
  for (const std::int64_t n : {9, 17, 18, 20, 25, 49}) {
    for (int structure = 0; structure < kStructures; ++structure) {
      const Types types = kTypes[turn % 3];
      expect_right(with_structure(Case{.n = n,
                                       .m = 37,
                                       .d = turn % 2 == 0 ? 13 : 16,
                                       .e = turn % 2 == 0 ? 16 : 19,
                                       .formula = formula(),
                                       .dtype = types.dtype,
                                       .compute = types.compute},
                                  structure, turn),
                   supported_targets());
      ++turn;
    }
  }
}

TEST_P(Backward, EverySubsetOfTheGradients) {
  const Case c{.heads = 4,
               .kv_heads = 2,
               .n = 50,
               .m = 140,
               .d = 9,
               .e = 21,
               .formula = formula(),
               .causal = Causal::kLast,
               .bias = Extra::kHeads,
               .strided = true};
  const Instance instance(c);
  for_each_target(supported_targets(), [&](const std::string&) {
    const Outputs all = run_kernels(instance, c.dtype);
    expect_every_subset(instance, c.dtype, all);
  });
}

// Sums of the bias in several parts, and tiles that run at once.
TEST_P(Backward, BiasThatManyShare) {
  int turn = 0;
  for (const Extra bias :
       {Extra::kFull, Extra::kPadding, Extra::kHeads, Extra::kRows,
        Extra::kQueries, Extra::kOne, Extra::kCycle}) {
    Case c{.batch = 4,
           .heads = 4,
           .kv_heads = 2,
           .n = 19,
           .m = 35,
           .formula = formula(),
           .bias = bias};
    if (turn % 3 == GetParam() % 3) c.batch = 144, c.n = 5, c.m = 7;
    if (turn % 7 == (GetParam() + 1) % 7 && !light())
      c.batch = 2, c.n = 300, c.m = 270, c.causal = Causal::kLast;
    ++turn;
    SCOPED_TRACE(::testing::PrintToString(c));
    const Instance instance(c);
    const Outputs want = instance.reference();
    const Outputs bound = error_bound(instance, want, c.dtype);
    for_each_target(targets_for(c), [&](const std::string&) {
      const Outputs got = run_kernels(instance, c.dtype);
      expect_gradients(got, want, bound);
      expect_same_on_threads(got, [&](Parallel& parallel) {
        return run_kernels(instance, c.dtype, parallel);
      });
    });
  }
}

TEST_P(Backward, OutputIsReadForSumAlone) {
  const Instance instance(Case{.n = 20, .m = 30, .formula = formula()});
  if (instance.config().activation.divisor == Divisor::kSum) return;
  const Outputs want = run_kernels(instance, DType::kF32);
  Outputs got = instance.outputs(DType::kF32);
  attention_backward(instance.inputs(), instance.config(),
                     {instance.d_o.tensor, {}, want.rows}, got.gradients());
  expect_same_gradients(got, want);
}

// What people write in a 16-bit type, one head: every matrix (scores, weights,
// their gradients, and the results) rounded to it, each sum in f32.
class Plain {
 public:
  Plain(const Case& c, const Instance& instance)
      : c_(c),
        f_(instance.config().activation),
        q_(matrix(instance.q)),
        k_(matrix(instance.k)),
        v_(matrix(instance.v)),
        d_o_(matrix(instance.d_o)) {}

  struct Gradients {
    Buffer dq, dk, dv;
  };
  Gradients run(const Instance& instance) const {
    const Matrix s = product(q_, transposed(k_), scale());
    Matrix a = s, ds = product(d_o_, transposed(v_), 1);
    for (std::size_t i = 0; i < s.size(); ++i) row(s[i], a[i], ds[i]);
    Outputs out = instance.outputs(c_.dtype);
    store(product(ds, k_, scale()), out.dq);
    store(product(transposed(ds), q_, scale()), out.dk);
    store(product(transposed(a), d_o_, 1), out.dv);
    return {std::move(out.dq), std::move(out.dk), std::move(out.dv)};
  }

 private:
  using Matrix = std::vector<std::vector<float>>;

  float scale() const { return 1 / std::sqrt(static_cast<float>(c_.d)); }
  float round(double x) const {
    const auto y = static_cast<float>(x);
    return c_.dtype == DType::kBF16 ? bf16_to_f32(f32_to_bf16(y))
                                    : f16_to_f32(f32_to_f16(y));
  }
  static Matrix matrix(const Buffer& b) {
    const Extents& size = b.tensor.size;
    Matrix m(static_cast<std::size_t>(size[2]));
    for_each_index(size, [&](const Extents& x) {
      m[static_cast<std::size_t>(x[2])].push_back(
          static_cast<float>(at(b.tensor, x)));
    });
    return m;
  }
  static void store(const Matrix& m, Buffer& b) {
    for_each_index(b.tensor.size, [&](const Extents& x) {
      b.set(x,
            m[static_cast<std::size_t>(x[2])][static_cast<std::size_t>(x[3])]);
    });
  }
  static Matrix transposed(const Matrix& m) {
    Matrix t(m[0].size(), std::vector<float>(m.size()));
    for (std::size_t i = 0; i < m.size(); ++i)
      for (std::size_t j = 0; j < m[i].size(); ++j) t[j][i] = m[i][j];
    return t;
  }
  Matrix product(const Matrix& a, const Matrix& b, float factor) const {
    Matrix c(a.size(), std::vector<float>(b[0].size()));
    for (std::size_t i = 0; i < a.size(); ++i) {
      for (std::size_t j = 0; j < b[0].size(); ++j) {
        float sum = 0;
        for (std::size_t k = 0; k < b.size(); ++k) sum += a[i][k] * b[k][j];
        c[i][j] = round(sum * factor);
      }
    }
    return c;
  }

  // Scores to weights, and the gradients of the weights to those of the scores.
  void row(const std::vector<float>& s, std::vector<float>& a,
           std::vector<float>& ds) const {
    const auto n = static_cast<double>(s.size());
    const bool sum = f_.divisor == Divisor::kSum;
    double c = f_.row_scale(n), mean = 0;
    if (sum) {
      double z = 0;
      for (const float x : s) z += std::fabs(f_.weight(x, n));
      c = 1 / z;
    }
    for (std::size_t j = 0; j < s.size(); ++j) {
      a[j] = round(c * f_.weight(s[j], n));
      if (sum) mean += double{a[j]} * double{ds[j]};
    }
    for (std::size_t j = 0; j < s.size(); ++j) {
      const double sign = (a[j] > 0) - (a[j] < 0);
      ds[j] = round(c * f_.weight_derivative(s[j], n) * (ds[j] - sign * mean));
    }
  }

  Case c_;
  Activation f_;
  Matrix q_, k_, v_, d_o_;
};

double largest_error(const Buffer& got, const Buffer& want) {
  double error = 0;
  for_each_index(want.tensor.size, [&](const Extents& x) {
    error = std::max(error, std::fabs(at(got.tensor, x) - at(want.tensor, x)));
  });
  return error;
}

TEST_P(Backward, HalfPrecisionIsNoWorseThanPlain) {
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    const Case c{.n = 31,
                 .m = 75,
                 .d = 24,
                 .e = 12,
                 .formula = formula(),
                 .dtype = dtype};
    const Instance instance(c);
    const Outputs want = instance.reference();
    const Plain::Gradients plain = Plain(c, instance).run(instance);
    for_each_target(supported_targets(), [&](const std::string&) {
      const Outputs got = run_kernels(instance, dtype);
      EXPECT_LE(largest_error(got.dq, want.dq),
                2 * largest_error(plain.dq, want.dq));
      EXPECT_LE(largest_error(got.dk, want.dk),
                2 * largest_error(plain.dk, want.dk));
      EXPECT_LE(largest_error(got.dv, want.dv),
                2 * largest_error(plain.dv, want.dv));
    });
  }
}

// It must reach its own row of dq and every key, and no other row.
TEST_P(Backward, NanInAnOutputGradientStaysInItsRow) {
  for (const Types& types : kTypes) {
    const Case c{.n = 41,
                 .m = 20,
                 .d = 9,
                 .e = 6,
                 .formula = formula(),
                 .dtype = types.dtype,
                 .compute = types.compute};
    SCOPED_TRACE(::testing::PrintToString(c));
    Instance instance(c);
    instance.d_o.set({0, 0, 7, 1}, kNaN);
    for_each_target(supported_targets(), [&](const std::string&) {
      const Outputs out = run_kernels(instance, c.dtype);
      expect_nan_where(out.dq, [](const Extents& x) { return x[2] == 7; });
      expect_nan_where(out.dv, [](const Extents& x) { return x[3] == 1; });
    });
  }
}

// exp(1e4) is far beyond any type; only differences matter.
TEST(BackwardExtremes, SoftmaxOfHugeScoresIsRight) {
  for (const double scale : {1e4, -1e4}) {
    const Case c{.n = 40,
                 .m = 300,
                 .d = 1,
                 .e = 3,
                 .causal = Causal::kLast,
                 .scale = scale};
    Instance instance(c);
    take_few_values(instance);
    const Outputs want = instance.reference();
    const Outputs bound = error_bound(instance, want, c.dtype);
    for_each_target(supported_targets(), [&](const std::string&) {
      expect_gradients(run_kernels(instance, c.dtype), want, bound);
    });
  }
}

// Rows that only fill up a strip have such scores, too, and nothing to divide
// them by.
TEST(BackwardExtremes, HugeBiasThatRowsShare) {
  for (const DType type : {DType::kF32, DType::kF64}) {
    const Case c{.batch = 2,
                 .n = 19,
                 .m = 35,
                 .bias = Extra::kPadding,
                 .dtype = type,
                 .compute = type};
    Instance instance(c);
    for_each_index(instance.bias.tensor.size, [&](const Extents& x) {
      instance.bias.set(x, 1000 + static_cast<double>(x[3] % 4));
    });
    const Outputs want = instance.reference();
    const Outputs bound = error_bound(instance, want, c.dtype);
    for_each_target(supported_targets(), [&](const std::string&) {
      expect_gradients(run_kernels(instance, c.dtype), want, bound);
    });
  }
}

}  // namespace
}  // namespace polyattn::test
