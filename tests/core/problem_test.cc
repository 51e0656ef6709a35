// The checks at the boundary: every way to be refused, with the message, and
// that nothing was written then; and the unusual calls that are accepted.
#include "core/problem.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/random_inputs.h"
#include "support/message_of.h"

namespace polyattn::test {
namespace {

constexpr std::int64_t kBig = std::int64_t{1} << 62;

// A call that is right until a test spoils it. B=2 H=4 G=2 N=3 M=5 D=6 E=7.
struct Call {
  explicit Call(const Case& c = {.batch = 2,
                                 .heads = 4,
                                 .kv_heads = 2,
                                 .n = 3,
                                 .m = 5,
                                 .d = 6,
                                 .e = 7,
                                 .mask = Extra::kFull,
                                 .bias = Extra::kFull})
      : instance(c),
        out(instance.outputs(DType::kF32)),
        in(instance.inputs()),
        config(instance.config()),
        results(out.results()),
        backward(out.backward_inputs(instance.d_o.tensor)),
        gradients(out.gradients()) {}

  void check() const {
    const Problem problem = check_problem("op", in, config);
    check_results("op", problem, results);
    check_backward("op", problem, backward, gradients);
  }

  bool untouched() const {
    const Outputs fresh = instance.outputs(DType::kF32);
    const auto same_state = [](const RowState& r) {
      return r.scale != r.scale;
    };
    return out.o.bytes == fresh.o.bytes && out.dq.bytes == fresh.dq.bytes &&
           out.dk.bytes == fresh.dk.bytes && out.dv.bytes == fresh.dv.bytes &&
           std::all_of(out.rows.begin(), out.rows.end(), same_state) &&
           out.stats[0].non_finite == -1;
  }

  Instance instance;
  Outputs out;
  AttentionInputs in;
  AttentionConfig config;
  AttentionResults results;
  AttentionBackwardInputs backward;
  AttentionGradients gradients;
};

struct Refused {
  const char* message;
  std::function<void(Call&)> spoil;
};

enum Through { kForward = 1, kBackward = 2, kBoth = 3, kNeither = 0 };

// The message comes from the check; the reference, which makes the same
// checks, shows that they come before the first write.
void expect_refused(const std::vector<Refused>& list, Through through) {
  for (const Refused& refused : list) {
    SCOPED_TRACE(refused.message);
    Call call;
    ASSERT_NO_THROW(call.check());
    refused.spoil(call);
    EXPECT_EQ(message_of<std::invalid_argument>([&] { call.check(); }),
              std::string("[op] ") + refused.message);
    if (through & kForward) {
      EXPECT_THROW(reference_forward(call.in, call.config, call.results),
                   std::invalid_argument);
    }
    if (through & kBackward) {
      EXPECT_THROW(reference_backward(call.in, call.config, call.backward.d_o,
                                      call.gradients),
                   std::invalid_argument);
    }
    EXPECT_TRUE(call.untouched());
  }
}

TEST(Problem, RefusesShapesThatDisagree) {
  expect_refused(
      {
          {"key batch 3 != query batch 2", [](Call& c) { c.in.k.size[0] = 3; }},
          {"value batch 3 != key batch 2", [](Call& c) { c.in.v.size[0] = 3; }},
          {"value heads 1 != key heads 2", [](Call& c) { c.in.v.size[1] = 1; }},
          {"value rows 4 != key rows 5", [](Call& c) { c.in.v.size[2] = 4; }},
          {"key width 5 != query width 6", [](Call& c) { c.in.k.size[3] = 5; }},
          {"query heads 3 is not a multiple of key heads 2",
           [](Call& c) { c.in.q.size[1] = 3; }},
          {"query heads 4 is not a multiple of key heads 0",
           [](Call& c) { c.in.k.size[1] = c.in.v.size[1] = 0; }},
          {"q size[2] -1 < 0", [](Call& c) { c.in.q.size[2] = -1; }},
          {"v size[3] -7 < 0", [](Call& c) { c.in.v.size[3] = -7; }},
          {"bias size[2] 2 is neither 1 nor 3",
           [](Call& c) { c.in.bias->size[2] = 2; }},
          {"bias size[0] 3 is no divisor of batch 2",
           [](Call& c) { c.in.bias->size[0] = 3; }},
          {"mask size[0] 0 is no divisor of batch 2",
           [](Call& c) { c.in.mask->size[0] = 0; }},
          {"bias size[1] 0 is neither 1 nor 4",
           [](Call& c) { c.in.bias->size[1] = 0; }},
          {"mask size[3] 4 is neither 1 nor 5",
           [](Call& c) { c.in.mask->size[3] = 4; }},
          {"mask size[0] -2 < 0", [](Call& c) { c.in.mask->size[0] = -2; }},
      },
      kBoth);
}

TEST(Problem, RefusesBadMemory) {
  const auto rows_of = [](Call& c, std::int64_t n) {
    c.in.q.size = {n, n, n, 0};
    c.in.q.stride = {};
    c.in.k = {nullptr, DType::kF32, {n, n, 0, 0}, {}};
    c.in.v = c.in.k;
  };
  expect_refused(
      {
          {"q is null but has 144 elements",
           [](Call& c) { c.in.q.data = nullptr; }},
          {"bias is null but has 120 elements",
           [](Call& c) { c.in.bias->data = nullptr; }},
          {"mask is null but has 120 elements",
           [](Call& c) { c.in.mask->data = nullptr; }},
          {"k has unknown element type 7",
           [](Call& c) { c.in.k.dtype = static_cast<DType>(7); }},
          {"bias has unknown element type 4",
           [](Call& c) { c.in.bias->dtype = static_cast<DType>(4); }},
          {"q stride of the last dimension 2 != 1",
           [](Call& c) { c.in.q.stride[3] = 2; }},
          {"v stride of the last dimension 0 != 1",
           [](Call& c) { c.in.v.stride[3] = 0; }},
          {"k stride[2] -6 < 0", [](Call& c) { c.in.k.stride[2] = -6; }},
          {"bias stride[3] -1 < 0", [](Call& c) { c.in.bias->stride[3] = -1; }},
          {"mask stride[0] -1 < 0", [](Call& c) { c.in.mask->stride[0] = -1; }},
          {"q strides reach beyond element 2305843009213693950",
           [](Call& c) { c.in.q.stride[1] = kBig; }},
          {"mask strides reach beyond element 9223372036854775806",
           [](Call& c) {
             c.in.mask->stride = {kBig, kBig, 1, 1};
           }},
          {"q has more than 2305843009213693950 elements",
           [](Call& c) {
             c.in.q.size = {kBig, kBig, 3, 6};
             c.in.q.stride = {0, 0, 0, 1};
           }},
          {"q has more than 288230376151711743 rows",
           [&](Call& c) { rows_of(c, std::int64_t{1} << 30); }},
          {"q has more than 288230376151711743 heads in all",
           [](Call& c) {
             c.in.q = {nullptr, DType::kF32, {kBig, 2, 0, 0}, {}};
             c.in.k = c.in.v = c.in.q;
           }},
      },
      kBoth);
}

TEST(Problem, RefusesBadConfig) {
  using Kind = ActivationKind;
  expect_refused(
      {
          {"scale nan is not finite", [](Call& c) { c.config.scale = kNaN; }},
          {"scale -inf is not finite", [](Call& c) { c.config.scale = -kInf; }},
          {"unknown causal 3",
           [](Call& c) { c.config.causal = static_cast<Causal>(3); }},
          {"compute type bf16 is neither f32 nor f64",
           [](Call& c) { c.config.compute = DType::kBF16; }},
          {"compute type ? is neither f32 nor f64",
           [](Call& c) { c.config.compute = static_cast<DType>(4); }},
          {"unknown activation kind 4",
           [](Call& c) { c.config.activation.kind = static_cast<Kind>(4); }},
          {"unknown activation divisor -1",
           [](Call& c) {
             c.config.activation.divisor = static_cast<Divisor>(-1);
           }},
          {"softmax with activation divisor 1 != sum",
           [](Call& c) { c.config.activation.divisor = Divisor::kSqrtN; }},
          {"activation degree 9 is not in 0..8",
           [](Call& c) { c.config.activation.degree = 9; }},
          {"activation degree -1 is not in 0..8",
           [](Call& c) { c.config.activation.degree = -1; }},
          {"activation degree 0 of relu < 1",
           [](Call& c) { c.config.activation.kind = Kind::kRelu; }},
          {"activation coefficient[3] inf is not finite",
           [](Call& c) { c.config.activation.coefficient[3] = kInf; }},
          {"activation coefficient[2] 5 above degree 0",
           [](Call& c) {
             c.config.activation.kind = Kind::kPolynomial;
             c.config.activation.coefficient[2] = 5;
           }},
          {"activation coefficient[0] 1e-46 becomes 0 in f32; compute in f64, "
           "or scale the formula",
           [](Call& c) {
             c.config.activation = Activation::parse("1e-46 + x^2");
           }},
          {"activation coefficient[2] -1e-60 becomes 0 in f32; compute in f64, "
           "or scale the formula",
           [](Call& c) {
             c.config.activation = Activation::parse("-1e-60 x^2/sqrt(N)");
           }},
          {"activation coefficient[1] 1e+39 becomes inf in f32; compute in "
           "f64, or scale the formula",
           [](Call& c) { c.config.activation = Activation::parse("1e39 x"); }},
          {"activation gain 1e-50 becomes 0 in f32; compute in f64, or scale "
           "the formula",
           [](Call& c) {
             c.config.activation = Activation::parse("1e-50 relu/N");
           }},
          {"activation gain nan is not finite",
           [](Call& c) { c.config.activation.gain = kNaN; }},
          {"activation gain 2 != 1 without sigmoid or relu",
           [](Call& c) { c.config.activation.gain = 2; }},
          {"activation log_n_bias without sigmoid",
           [](Call& c) { c.config.activation.log_n_bias = true; }},
      },
      kBoth);
}

// Subnormal numbers are numbers, and f64 holds what f32 does not.
TEST(Problem, TakesCoefficientsThatTheComputeTypeHolds) {
  for (const char* formula : {"1e-45 + x", "2e-40 x^2", "3.4e38 x^3"}) {
    Call call;
    call.config.activation = Activation::parse(formula);
    EXPECT_NO_THROW(check_problem("op", call.in, call.config)) << formula;
  }
  for (const char* formula : {"1e-46 + x", "1e-300 x^2", "1e300 relu/N"}) {
    Call call;
    call.config.activation = Activation::parse(formula);
    call.config.compute = DType::kF64;
    EXPECT_NO_THROW(check_problem("op", call.in, call.config)) << formula;
  }
}

TEST(Problem, RefusesBadOffsets) {
  static const std::vector<std::int64_t> none, one = {0}, good = {0, 1, 3},
                                               late = {1, 3}, high = {0, 4},
                                               down = {0, 2, 1, 3};
  const auto set = [](const auto& q, const auto& k) {
    return [&](Call& c) {
      for (ConstTensor* t : {&c.in.q, &c.in.k, &c.in.v}) t->size[0] = 1;
      c.in.k.size[2] = c.in.v.size[2] = 3;
      c.in.q_offsets = q;
      c.in.k_offsets = k;
    };
  };
  expect_refused(
      {
          {"k_offsets length 0 != q_offsets length 3", set(good, none)},
          {"k_offsets length 3 != q_offsets length 0", set(none, good)},
          {"k_offsets length 2 != q_offsets length 3", set(good, high)},
          {"q_offsets has 1 entries, fewer than 2", set(one, one)},
          {"q_offsets[0] 1 != 0", set(late, high)},
          {"q_offsets[2] 1 < 2 before it", set(down, down)},
          {"q_offsets ends at 4 != total rows 3", set(high, high)},
          {"query batch 2 != batch of a ragged call 1",
           [](Call& c) { c.in.q_offsets = c.in.k_offsets = good; }},
          // The bias is [2, 4, 3, 5], the longest sequences are 2 and 2.
          {"bias size[2] 3 is neither 1 nor 2", set(good, good)},
      },
      kBoth);
}

TEST(Problem, RefusesBadResults) {
  expect_refused(
      {
          {"o size[3] 6 != 7 as in the output [B, H, N, E]",
           [](Call& c) { c.results.o.size[3] = 6; }},
          {"o size[0] 1 != 2 as in the output [B, H, N, E]",
           [](Call& c) { c.results.o.size[0] = 1; }},
          {"o is null but has 168 elements",
           [](Call& c) { c.results.o.data = nullptr; }},
          {"o stride of the last dimension 3 != 1",
           [](Call& c) { c.results.o.stride[3] = 3; }},
          {"o stride[1] -21 < 0", [](Call& c) { c.results.o.stride[1] = -21; }},
          {"o overlaps itself: stride[0] 0 < extent 1 of what it steps over",
           [](Call& c) { c.results.o.stride[0] = 0; }},
          {"o overlaps itself: stride[1] 20 < extent 21 of what it steps over",
           [](Call& c) { c.results.o.stride[1] = 20; }},
          {"rows length 23 != B * H * N 24",
           [](Call& c) { c.results.rows = c.results.rows.first(23); }},
          {"stats length 7 != B * H 8",
           [](Call& c) { c.results.stats = c.results.stats.first(7); }},
      },
      kForward);
}

TEST(Problem, RefusesBadGradients) {
  expect_refused(
      {
          {"d_o size[2] 2 != 3 as in the output [B, H, N, E]",
           [](Call& c) { c.backward.d_o.size[2] = 2; }},
          {"d_o is null but has 168 elements",
           [](Call& c) { c.backward.d_o.data = nullptr; }},
          {"d_o stride of the last dimension 0 != 1",
           [](Call& c) { c.backward.d_o.stride[3] = 0; }},
          {"dq size[1] 2 != 4 as in its input",
           [](Call& c) { c.gradients.dq->size[1] = 2; }},
          {"dk size[2] 4 != 5 as in its input",
           [](Call& c) { c.gradients.dk->size[2] = 4; }},
          {"dv overlaps itself: stride[2] 6 < extent 7 of what it steps over",
           [](Call& c) { c.gradients.dv->stride[2] = 6; }},
          {"dv is null but has 140 elements",
           [](Call& c) { c.gradients.dv->data = nullptr; }},
          {"d_bias size[2] 1 != 3 as in its input",
           [](Call& c) { c.gradients.d_bias->size[2] = 1; }},
          {"d_bias without a bias", [](Call& c) { c.in.bias.reset(); }},
      },
      kBackward);
  expect_refused(
      {
          {"rows length 0 != B * H * N 24",
           [](Call& c) { c.backward.rows = {}; }},
          {"o size[3] 8 != 7 as in the output [B, H, N, E]",
           [](Call& c) { c.backward.o.size[3] = 8; }},
      },
      kNeither);
}

TEST(Problem, MessageNamesTheOperation) {
  Call call;
  call.in.k.size[3] = 5;
  EXPECT_EQ(message_of<std::invalid_argument>(
                [&] { reference_forward(call.in, call.config, call.results); }),
            "[reference_forward] key width 5 != query width 6");
}

TEST(Problem, AcceptsTheUnusual) {
  const std::vector<std::function<void(Call&)>> list = {
      [](Call& c) {
        c.in.q.stride = {0, 0, 0, 1};
      },
      [](Call& c) { c.in.bias->stride = {}; },
      [](Call& c) {
        c.in.mask->stride = {0, 3, 0, 7};
      },
      [](Call& c) { c.results.rows = {}, c.results.stats = {}; },
      [](Call& c) { c.gradients = {}; },
      [](Call& c) {  // o is not read
        c.config.activation = Activation::parse("x^2/N");
        c.backward.o = {};
      },
      [](Call& c) {  // widths of 1 make the last stride meaningless
        for (ConstTensor* t : {&c.in.q, &c.in.k})
          t->size[3] = 1, t->stride[3] = 9;
        c.gradients = {};
      },
  };
  for (const auto& change : list) {
    Call call;
    change(call);
    EXPECT_NO_THROW(call.check());
  }
}

TEST(Problem, AcceptsEmptySizes) {
  for (const Case& c :
       {Case{.batch = 0}, Case{.n = 0}, Case{.m = 0}, Case{.d = 0},
        Case{.e = 0}, Case{.heads = 0, .kv_heads = 0},
        Case{.heads = 0, .kv_heads = 2},
        Case{.q_lengths = {0, 3}, .k_lengths = {2, 0}}}) {
    SCOPED_TRACE(::testing::PrintToString(c));
    const Call call(c);
    EXPECT_NO_THROW(call.check());
  }
}

TEST(Problem, HoldsWhatWasAsked) {
  const Call call;
  const Problem p = check_problem("op", call.in, call.config);
  EXPECT_EQ((std::vector{p.batch, p.heads, p.kv_heads, p.n, p.m, p.d, p.e}),
            (std::vector<std::int64_t>{2, 4, 2, 3, 5, 6, 7}));
  EXPECT_EQ(p.scale, 1 / std::sqrt(6.0));
  EXPECT_EQ(p.kv_head(1), 0);
  EXPECT_EQ(p.kv_head(2), 1);
  const Call ragged(
      {.q_lengths = {2, 0, 3}, .k_lengths = {1, 4, 2}, .scale = 3});
  const Problem r = check_problem("op", ragged.in, ragged.config);
  EXPECT_EQ((std::vector{r.batch, r.n, r.m}),
            (std::vector<std::int64_t>{3, 3, 4}));
  EXPECT_EQ(r.scale, 3);
  EXPECT_EQ(r.row_index(2, 0, 1), 3);
  const Call narrow({.d = 0});
  EXPECT_EQ(check_problem("op", narrow.in, narrow.config).scale, 1);
}

// Keys that row i of sequence b may see under causality, window, mask and bias.
std::int64_t count_visible(const Problem& p, std::int64_t b, std::int64_t h,
                           std::int64_t i) {
  const auto& mask = p.in.mask;
  const auto& bias = p.in.bias;
  std::int64_t count = 0;
  const KeyRange keys = p.keys_of(p.sequence(b), i);
  for (std::int64_t j = keys.begin; j < keys.end; ++j) {
    const bool hidden =
        mask &&
        mask->data[broadcast_offset(mask->size, mask->stride, b, h, i, j)] == 0;
    const bool removed =
        bias && load_element(bias->data, bias->dtype,
                             broadcast_offset(bias->size, bias->stride, b, h, i,
                                              j)) == -kInf;
    if (!hidden && !removed) ++count;
  }
  return count;
}

// 1/N makes the reference say how many keys each row saw.
TEST(Problem, CountsVisibleKeysAsTheReference) {
  for (const Causal causal : {Causal::kNone, Causal::kFirst, Causal::kLast}) {
    for (const Extra extra :
         {Extra::kAbsent, Extra::kFull, Extra::kPadding, Extra::kHeads,
          Extra::kRows, Extra::kQueries, Extra::kCycle}) {
      const Case c{.batch = 4,
                   .heads = 2,
                   .kv_heads = 1,
                   .n = 4,
                   .m = 6,
                   .formula = "1/N",
                   .causal = causal,
                   .mask = extra,
                   .bias = extra,
                   .strided = true,
                   .window = {extra == Extra::kHeads ? -1 : 2, 1}};
      SCOPED_TRACE(::testing::PrintToString(c));
      const Instance instance(c);
      const Outputs out = instance.reference();
      const Problem p =
          check_problem("op", instance.inputs(), instance.config());
      for_each_index({4, 2, 4, 1}, [&](const Extents& x) {
        const std::int64_t n = count_visible(p, x[0], x[1], x[2]);
        const double scale =
            out.rows[static_cast<std::size_t>(p.row_index(x[0], x[1], x[2]))]
                .scale;
        EXPECT_EQ(scale, n == 0 ? 0 : 1 / static_cast<double>(n));
      });
    }
  }
}

}  // namespace
}  // namespace polyattn::test
