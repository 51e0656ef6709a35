// Strides and shapes: whatever way the tensors lie in memory, and with any
// number of leading dimensions, the op gives what it gives for dense tensors of
// four dimensions. Bit by bit, for it is the same arithmetic.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "polyattn/torch/attention.h"
#include "torch/eager.h"
#include "torch/tensors.h"

namespace polyattn {
namespace layout_test {

using test::expect_same_bits;
using test::Random;

using Options = AttentionOptions;
using Tensors = std::vector<at::Tensor>;

// Output and gradients by q, k, v with a fixed output gradient.
Tensors run(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
            const Options& options) {
  Tensors inputs = {q.detach(), k.detach(), v.detach()};
  for (at::Tensor& t : inputs) t.requires_grad_();
  const at::Tensor o = attention(inputs[0], inputs[1], inputs[2], options);
  const at::Tensor d_o =
      Random(99).normal({o.numel()}).to(o.scalar_type()).view(o.sizes());
  Tensors result = test::gradients({o}, inputs, {d_o});
  result.insert(result.begin(), o);
  return result;
}

void expect_same_run(const Tensors& got, const Tensors& want) {
  const char* names[] = {"o", "dq", "dk", "dv"};
  for (std::size_t i = 0; i < 4; ++i) {
    expect_same_bits(names[i], got[i], want[i]);
  }
}

// The values of t in another place.
using Layout = std::function<at::Tensor(const at::Tensor&)>;

struct NamedLayout {
  const char* name;
  Layout apply;
};

// Each gives a tensor of four dimensions that is not dense.
const std::vector<NamedLayout>& layouts() {
  static const std::vector<NamedLayout> list = {
      {"rows outside heads",
       [](const at::Tensor& t) {
         return t.transpose(1, 2).contiguous().transpose(1, 2);
       }},
      {"last dimension outside",
       [](const at::Tensor& t) {
         return t.transpose(2, 3).contiguous().transpose(2, 3);
       }},
      {"every second element",
       [](const at::Tensor& t) {
         return at::stack({t, t + 1}, 4).select(4, 0);
       }},
      {"part of wider rows",
       [](const at::Tensor& t) {
         return at::cat({t + 1, t, t + 2}, 3).narrow(3, t.size(3), t.size(3));
       }},
      {"batch innermost",
       [](const at::Tensor& t) {
         return t.permute({1, 2, 3, 0}).contiguous().permute({3, 0, 1, 2});
       }},
      {"from an offset",
       [](const at::Tensor& t) {
         return at::cat({t.flatten(), t.flatten()})
             .slice(0, 1, t.numel() + 1)
             .copy_(t.flatten())
             .view(t.sizes());
       }},
  };
  return list;
}

struct Dense {
  explicit Dense(at::ScalarType type)
      : q(Random(1).normal({2, 4, 9, 6}, type)),
        k(Random(2).normal({2, 2, 11, 6}, type)),
        v(Random(3).normal({2, 2, 11, 5}, type)) {}
  at::Tensor q, k, v;
};

TEST(Strides, EveryLayoutOfEveryInput) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16}) {
    const Dense in(type);
    for (const char* formula : {"softmax", "x^3/sqrt(N)"}) {
      const Options options = Options().activation(formula).gqa(true);
      const Tensors want = run(in.q, in.k, in.v, options);
      for (const auto& [name, layout] : layouts()) {
        SCOPED_TRACE(name);
        expect_same_run(run(layout(in.q), in.k, in.v, options), want);
        expect_same_run(run(in.q, layout(in.k), in.v, options), want);
        expect_same_run(run(in.q, in.k, layout(in.v), options), want);
        expect_same_run(run(layout(in.q), layout(in.k), layout(in.v), options),
                        want);
      }
    }
  }
}

TEST(Strides, EveryLayoutOfMaskAndBias) {
  const Dense in(at::kFloat);
  const at::Tensor mask = Random(4).bools({2, 4, 9, 11}, 0.7);
  const at::Tensor bias = Random(5).normal({2, 4, 9, 11}, at::kFloat);
  for (const auto& [name, layout] : layouts()) {
    SCOPED_TRACE(name);
    const at::Tensor own_mask = layout(mask.to(at::kByte)).view(at::kBool);
    for (const auto& [extra, own] :
         {std::pair{mask, own_mask}, {bias, layout(bias)}}) {
      expect_same_run(run(in.q, in.k, in.v, Options().gqa(true).mask(own)),
                      run(in.q, in.k, in.v, Options().gqa(true).mask(extra)));
    }
  }
}

// Expanded by torch, repeated in memory, or broadcast by the op itself: the
// same. The gradient of what is repeated is the sum, in any order.
TEST(Strides, ExpandedInputs) {
  const Dense in(at::kDouble);
  const std::vector<std::int64_t> heads = {2, 4, 11, -1};
  const at::Tensor k = in.k.narrow(1, 0, 1), v = in.v.narrow(1, 0, 1);
  const Tensors want = run(in.q, k.expand(heads).contiguous(),
                           v.expand(heads).contiguous(), Options());
  expect_same_run(run(in.q, k.expand(heads), v.expand(heads), Options()), want);
  const Tensors broadcast = run(in.q, k, v, Options());
  expect_same_bits("o", broadcast[0], want[0]);
  expect_same_bits("dq", broadcast[1], want[1]);
  test::expect_near("dk", broadcast[2], want[2].sum(1, true));
  test::expect_near("dv", broadcast[3], want[3].sum(1, true));
}

TEST(Strides, EveryDimensionOfStrideZero) {
  for (std::int64_t dim = 0; dim < 4; ++dim) {
    SCOPED_TRACE(dim);
    const Dense in(at::kFloat);
    const auto flat = [&](const at::Tensor& t) {
      return t.narrow(dim, 0, 1).expand_as(t);
    };
    const Options options = Options().activation("x^3/14").gqa(true);
    expect_same_run(run(flat(in.q), flat(in.k), flat(in.v), options),
                    run(flat(in.q).contiguous(), flat(in.k).contiguous(),
                        flat(in.v).contiguous(), options));
  }
}

TEST(OutputLayout, IsThatOfTheQuery) {
  const Dense in(at::kFloat);
  const at::Tensor rows_outside = layouts()[0].apply(in.q);
  const at::Tensor o = attention(rows_outside, in.k, in.v, Options().gqa(true));
  EXPECT_TRUE(o.transpose(1, 2).is_contiguous());
  EXPECT_FALSE(o.is_contiguous());
  EXPECT_TRUE(attention(in.q, in.k, in.v, Options().gqa(true)).is_contiguous());
}

// One projection: q, k and v side by side in its rows, and grouped heads.
TEST(OutputLayout, GradientsOfOneMatrixAreOneMatrix) {
  for (const char* formula : {"softmax", "x^3/sqrt(N)"}) {
    const at::Tensor rows = Random(6).normal({2, 9, 4 * 6 + 2 * 6 + 2 * 5});
    const auto part = [&](std::int64_t first, std::int64_t heads,
                          std::int64_t width) {
      return rows.narrow(2, first, heads * width)
          .unflatten(2, {heads, width})
          .transpose(1, 2);
    };
    const at::Tensor q = part(0, 4, 6), k = part(24, 2, 6), v = part(36, 2, 5);
    const Options options = Options().gqa(true).activation(formula);
    const Tensors got = run(q, k, v, options);
    expect_same_run(
        got, run(q.contiguous(), k.contiguous(), v.contiguous(), options));
    EXPECT_TRUE(got[1].is_alias_of(got[2]) && got[1].is_alias_of(got[3]));
    for (std::size_t i = 1; i < 4; ++i) {
      EXPECT_EQ(got[i].strides(), (i == 1 ? q : i == 2 ? k : v).strides());
    }
    EXPECT_EQ(got[2].storage_offset(), 24);
    EXPECT_EQ(got[3].storage_offset(), 36);
    // Out of order they are matrices of their own.
    const Tensors swapped = run(q, part(30, 2, 6), part(24, 2, 5), options);
    EXPECT_FALSE(swapped[1].is_alias_of(swapped[2]));
  }
}

TEST(OutputLayout, GradientsLieAsTheInputs) {
  const Dense in(at::kFloat);
  const Layout& rows_outside = layouts()[0].apply;
  const Tensors got =
      run(rows_outside(in.q), in.k, rows_outside(in.v), Options().gqa(true));
  EXPECT_TRUE(got[1].transpose(1, 2).is_contiguous());
  EXPECT_TRUE(got[2].is_contiguous());
  EXPECT_TRUE(got[3].transpose(1, 2).is_contiguous());
}

}  // namespace layout_test
}  // namespace polyattn
