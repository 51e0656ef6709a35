// The op on the CPU against two definitions: the reference of the core, and
// plain torch ops. Outputs, gradients and norms, within the error that rounding
// can explain.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/error_bound.h"
#include "core/random_inputs.h"
#include "torch/eager.h"
#include "torch/op_cases.h"
#include "torch/tensors.h"

namespace polyattn {
namespace kernels_test {

using test::at;
using test::Buffer;
using test::Case;
using test::eager_attention;
using test::Extra;
using test::Instance;
using test::Outputs;
using test::tensor_of;

// What a square root and a square add to a norm: two roundings, each of which
// counts twice in the square.
constexpr double kSquared = 4 * 0x1p-53;

struct Inputs {
  explicit Inputs(const Instance& instance)
      : q(tensor_of(instance.q).requires_grad_()),
        k(tensor_of(instance.k).requires_grad_()),
        v(tensor_of(instance.v).requires_grad_()),
        d_o(tensor_of(instance.d_o)) {}
  at::Tensor q, k, v, d_o;
};

void set_gradients(const at::Tensor& o, const Inputs& in, Outputs& to) {
  const auto found =
      test::gradients({o}, {in.q, in.k, in.v}, {in.d_o.to(o.scalar_type())});
  to.o = test::buffer_of(o);
  to.dq = test::buffer_of(found[0]);
  to.dk = test::buffer_of(found[1]);
  to.dv = test::buffer_of(found[2]);
}

Outputs run_op(const Inputs& in, const AttentionOptions& options) {
  const AttentionWithNorms result =
      attention_with_norms(in.q, in.k, in.v, options);
  Outputs out;
  set_gradients(result.output, in, out);
  const AttentionNorms& norms = result.norms;
  for (std::int64_t b = 0; b < in.q.size(0); ++b) {
    for (std::int64_t h = 0; h < in.q.size(1); ++h) {
      out.stats.push_back({std::pow(norms.weight[b][h].item<double>(), 2),
                           std::pow(norms.jacobian[b][h].item<double>(), 2),
                           norms.max_abs_score[b][h].item<double>(),
                           norms.non_finite[b][h].item<std::int64_t>()});
    }
  }
  return out;
}

// Eager ops in f64, given as f64.
Outputs run_eager(const Inputs& in, const AttentionOptions& options) {
  const Inputs& narrow = in;
  Inputs wide = in;
  wide.q = narrow.q.detach().to(at::kDouble).requires_grad_();
  wide.k = narrow.k.detach().to(at::kDouble).requires_grad_();
  wide.v = narrow.v.detach().to(at::kDouble).requires_grad_();
  Outputs out;
  set_gradients(eager_attention(wide.q, wide.k, wide.v, options), wide, out);
  return out;
}

void expect_all_within(const Outputs& got, const Outputs& want,
                       const Outputs& bound) {
  test::expect_within("o", got.o, want.o, bound.o);
  test::expect_within("dq", got.dq, want.dq, bound.dq);
  test::expect_within("dk", got.dk, want.dk, bound.dk);
  test::expect_within("dv", got.dv, want.dv, bound.dv);
}

void add(const Buffer& more, double factor, Buffer& to) {
  test::for_each_index(to.tensor.size, [&](const Extents& x) {
    to.set(x, at(to.tensor, x) + factor * at(more.tensor, x));
  });
}

// The eager ops have errors too, and by other ways: at most four times as many
// roundings as a kernel in f64, whose bound is known.
void add_eager_error(const Case& c, const Outputs& want, Outputs& bound) {
  Case wide = c;
  wide.compute = DType::kF64;
  const Instance instance(wide);
  const Outputs eager = test::error_bound(instance, want, DType::kF64);
  add(eager.o, 4, bound.o);
  add(eager.dq, 4, bound.dq);
  add(eager.dk, 4, bound.dk);
  add(eager.dv, 4, bound.dv);
}

void expect_right(const Case& c) {
  SCOPED_TRACE(::testing::PrintToString(c));
  Instance instance(c);
  const AttentionOptions options = test::options_of(c, instance);
  const Outputs want = instance.reference();
  Outputs bound = test::error_bound(instance, want, c.dtype);
  for (std::size_t i = 0; i < bound.stats.size(); ++i) {
    bound.stats[i].weight_sq += kSquared * want.stats[i].weight_sq;
    bound.stats[i].jacobian_sq += kSquared * want.stats[i].jacobian_sq;
  }
  const Inputs in(instance);
  const Outputs got = run_op(in, options);
  expect_all_within(got, want, bound);
  test::expect_stats_within(got, want, bound);
  add_eager_error(c, want, bound);
  expect_all_within(got, run_eager(in, options), bound);
}

class Kernels : public ::testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Formula, Kernels,
                         ::testing::Range(0, test::kEagerFormulaCount));

TEST_P(Kernels, AgreeWithReferenceAndEagerTorch) {
  for (const Case& c : test::op_cases(GetParam(), 3)) expect_right(c);
}

TEST_P(Kernels, AwkwardLengths) {
  constexpr std::int64_t kLengths[] = {97, 130, 1, 71};
  const int turn = GetParam();
  Case c = test::op_case(test::kEagerFormulas[turn], 0, turn);
  c.n = kLengths[turn % 4], c.m = kLengths[(turn + 1 + turn / 4) % 4];
  c.d = 59, c.e = 37, c.batch = 1;
  expect_right(c);
}

// The formulas that have no eager twin go through the same code; that their
// text reaches the kernels is seen by the reference alone.
TEST(KernelsOfOtherFormulas, AgreeWithReference) {
  const Case c{.heads = 2,
               .kv_heads = 2,
               .n = 9,
               .m = 12,
               .formula = "(1 - x + x^2/3 - x^3/7 + x^5/50 - x^8/900)/N",
               .dtype = DType::kF64,
               .compute = DType::kF64};
  for (const char* formula : {c.formula.c_str(), "-2.5*sigmoid/sum",
                              "3*relu^3/sum", "(1 + x)^2/sqrt(N)/7"}) {
    Case own = c;
    own.formula = formula;
    SCOPED_TRACE(formula);
    Instance instance(own);
    const Outputs want = instance.reference();
    const Outputs bound = test::error_bound(instance, want, own.dtype);
    expect_all_within(run_op(Inputs(instance), test::options_of(own, instance)),
                      want, bound);
  }
}

// The default is softmax with scale 1/sqrt(D), as torch has it.
TEST(KernelsDefaults, AreThoseOfTorch) {
  test::Random random(3);
  const at::Tensor q = random.normal({2, 3, 4, 5});
  const at::Tensor k = random.normal({2, 3, 6, 5});
  const at::Tensor v = random.normal({2, 3, 6, 7});
  const at::Tensor want = at::matmul(
      at::softmax(at::matmul(q, k.transpose(2, 3)) / std::sqrt(5.0), -1), v);
  test::expect_near("o", attention(q, k, v), want);
}

TEST(KernelsDefaults, CausalTrueIsKFirst) {
  test::Random random(4);
  const at::Tensor q = random.normal({1, 1, 4, 2});
  const at::Tensor k = random.normal({1, 1, 6, 2});
  const auto run = [&](const AttentionOptions& o) {
    return attention(q, k, k, o);
  };
  using O = AttentionOptions;
  const at::Tensor first = run(O().causal(Causal::kFirst));
  test::expect_same_bits("true", run(O().causal(true)), first);
  test::expect_same_bits("false", run(O().causal(false)), run(O()));
  EXPECT_FALSE(at::equal(first, run(O().causal(Causal::kLast))));
  EXPECT_FALSE(at::equal(first, run(O())));
}

// A key with a bias of -inf is not counted in N, and neither are masked ones.
TEST(KernelsVisibility, NCountsVisibleKeysAlone) {
  const at::Tensor q = at::ones({1, 1, 1, 1}, at::kDouble);
  const at::Tensor k = at::ones({1, 1, 5, 1}, at::kDouble);
  const at::Tensor bias = at::zeros({1, 5}, at::kDouble);
  bias[0][1] = bias[0][3] = -test::kInf;
  const auto output = [&](const at::Tensor& mask) {
    return attention(q, k, k,
                     AttentionOptions().activation("x/sqrt(N)").mask(mask))
        .item<double>();
  };
  // Three keys of score 1, each divided by sqrt(3).
  EXPECT_NEAR(output(bias), std::sqrt(3.0), 4 * 0x1p-52);
  EXPECT_NEAR(output(bias.eq(0)), std::sqrt(3.0), 4 * 0x1p-52);
  EXPECT_EQ(output(at::zeros({1, 5}, at::kBool)), 0);
}

}  // namespace kernels_test
}  // namespace polyattn
