// What the tests of the linear path run.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/compare_outputs.h"
#include "core/error_bound.h"
#include "core/kernel_cases.h"
#include "core/linear_bound.h"
#include "core/random_inputs.h"
#include "polyattn/attention.h"
#include "polyattn/parallel.h"

namespace polyattn::test {

inline constexpr int kLinearFormulaCount = 12;
inline const std::string kLinearFormulas[kLinearFormulaCount] = {
    "x/sqrt(N)",
    "x^2/sqrt(N)",
    "x^3/sqrt(N)",
    "x^3/14",
    "x^4/N",
    "x^4/sum",
    "x^2/sum",
    "-x^2/sum",
    "1 + x + x^2/2",
    "(1 + x + x^2/2)/sum",
    "(1 - x + x^2/3 - x^4/9)/N",
    "3/N"};

// A suite with a case for each of them.
class EveryLinearFormula : public ::testing::TestWithParam<int> {
 protected:
  std::string formula() const { return kLinearFormulas[GetParam()]; }
};

// Forward, and backward with what forward gave. A call that wants statistics
// would not be linear.
inline Outputs run_linear(const Instance& instance, DType storage,
                          Parallel& parallel) {
  Outputs out = instance.outputs(storage);
  run_forward(instance, {out.o.tensor, out.rows, {}}, parallel);
  run_backward(instance, out, out.gradients(), parallel);
  return out;
}

inline Outputs run_linear(const Instance& instance, DType storage) {
  SerialParallel serial;
  return run_linear(instance, storage, serial);
}

// The linear path against the reference, on these targets.
inline void expect_linear(Case c, const std::vector<std::string>& targets) {
  c.path = Path::kLinear;
  SCOPED_TRACE(::testing::PrintToString(c));
  const Instance instance(c);
  const Outputs want = instance.reference();
  const Outputs bound = linear_bound(instance, want, c.dtype);
  for_each_target(targets, [&](const std::string&) {
    expect_all_within(run_linear(instance, c.dtype), want, bound);
  });
}

// Makes the case one of the eight structures that have a linear path: all keys,
// causal both ways, masked, grouped, ragged, and mixtures.
inline constexpr int kLinearStructures = 8;
inline Case with_linear_structure(Case c, int structure) {
  const auto grouped = [&] { c.batch = 2, c.heads = 4, c.kv_heads = 2; };
  const auto ragged = [&] {
    c.q_lengths = {c.n, 0, 1, c.n / 2, 0};
    c.k_lengths = {c.m / 2, 3, 0, c.m, 0};
    c.heads = c.kv_heads = 2;
  };
  if (structure == 1) c.causal = Causal::kFirst;
  if (structure == 2) c.causal = Causal::kLast;
  if (structure == 3)
    c.batch = c.heads = c.kv_heads = 2, c.mask = Extra::kPadding;
  if (structure == 4) grouped(), c.scale = -0.4;
  if (structure == 5) ragged();
  if (structure == 6)
    grouped(), c.causal = Causal::kLast, c.mask = Extra::kPadding,
               c.strided = true;
  if (structure == 7)
    ragged(), c.causal = c.seed % 2 == 0 ? Causal::kFirst : Causal::kLast,
              c.mask = Extra::kPadding, c.scale = -0.7;
  return c;
}

}  // namespace polyattn::test
