// Forward mode, against the derivative that reverse mode twice over gives of
// the definition, and the errors of attention_jvp.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <string>
#include <vector>

#include "polyattn/torch/attention.h"
#include "torch/call.h"
#include "torch/composed.h"
#include "torch/eager.h"
#include "torch/op_cases.h"
#include "torch/tensors.h"

namespace polyattn {
namespace jvp_test {

using test::Case;
using test::expect_near;
using test::Instance;
using test::leaf;
using test::Random;
using test::tensor_of;
using Tensors = std::vector<at::Tensor>;

// The gradient of a gradient by its own weights is the tangent.
at::Tensor tangent_by_definition(const Tensors& inputs, const Tensors& tangents,
                                 const AttentionOptions& options) {
  Tensors t;
  for (const at::Tensor& x : inputs) t.push_back(leaf(x));
  const at::Tensor o = composed_attention(make_call(t[0], t[1], t[2], options));
  const at::Tensor weights = leaf(at::zeros_like(o));
  const Tensors first = test::gradients({o}, t, {weights}, true);
  return test::gradients(first, {weights}, tangents)[0];
}

class Jvp : public ::testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Formula, Jvp,
                         ::testing::Range(0, test::kEagerFormulaCount));

TEST_P(Jvp, AgreesWithTheDefinition) {
  Random random(31);
  for (Case c : test::op_cases(GetParam(), 1)) {
    c.dtype = c.compute = DType::kF64;
    SCOPED_TRACE(::testing::PrintToString(c));
    Instance instance(c);
    const AttentionOptions options = test::options_of(c, instance);
    const Tensors inputs = {tensor_of(instance.q), tensor_of(instance.k),
                            tensor_of(instance.v)};
    Tensors u;
    for (const at::Tensor& t : inputs) u.push_back(random.normal(t.sizes()));
    const AttentionWithTangent got = attention_jvp(
        inputs[0], inputs[1], inputs[2], {u[0], u[1], u[2], {}}, options);
    expect_near("output", got.output,
                attention(inputs[0], inputs[1], inputs[2], options));
    expect_near("tangent", got.tangent,
                tangent_by_definition(inputs, u, options));
  }
}

std::string error_of(const AttentionTangents& tangents,
                     const AttentionOptions& options = {}) {
  const at::Tensor q = at::ones({1, 2, 5, 3}), k = at::ones({1, 2, 7, 3});
  try {
    attention_jvp(q, k, k, tangents, options);
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "";
}

TEST(JvpErrors, NameTheTangentAndBothValues) {
  EXPECT_EQ(error_of({.q = at::ones({1, 2, 7, 3})}),
            "[attention_jvp] query_tangent has size [1, 2, 7, 3], not that of "
            "query, [1, 2, 5, 3]");
  EXPECT_EQ(error_of({.v = at::ones({1, 2, 7, 3}, at::kDouble)}),
            "[attention_jvp] value_tangent has type Double, value has Float");
  EXPECT_EQ(error_of({.bias = at::ones({5, 7})}),
            "[attention_jvp] bias_tangent without a bias");
  EXPECT_EQ(error_of({}, AttentionOptions().dropout(0.5)),
            "[attention_jvp] dropout 0.5 != 0");
  // The level of forward mode was left.
  EXPECT_EQ(error_of({.q = at::ones({1, 2, 5, 3})}), "");
}

}  // namespace jvp_test
}  // namespace polyattn
