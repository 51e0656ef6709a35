// The cases that the tests of the op share: every formula with every mask and
// bias, the rest taken in turn so that every two choices meet.
#pragma once

#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "core/random_inputs.h"
#include "torch/eager.h"

namespace polyattn::test {

inline constexpr int kExtras = 11;  // none, five masks, five biases

// Lengths include 0 and 1. Masks hide all keys of row 1; one bias in eight is
// -inf.
inline Case op_case(const std::string& formula, int extra, int turn) {
  constexpr Extra kShapes[] = {Extra::kFull, Extra::kPadding, Extra::kHeads,
                               Extra::kRows, Extra::kQueries};
  constexpr std::int64_t kN[] = {5, 18, 1, 9, 33, 0, 2};
  constexpr std::int64_t kM[] = {7, 1, 20, 16, 0, 35, 4, 13};
  constexpr std::int64_t kWidth[] = {3, 16, 1, 9, 4};
  constexpr DType kTypes[] = {DType::kF64, DType::kF32, DType::kBF16,
                              DType::kF16};
  Case c;
  c.formula = formula;
  c.n = kN[turn % 7], c.m = kM[turn % 8];
  c.d = kWidth[turn % 5], c.e = kWidth[(turn + 1 + turn / 5) % 5];
  c.batch = 1 + turn % 2, c.heads = turn % 3 == 0 ? 1 : 4;
  c.kv_heads = turn % 3 == 2 ? 2 : c.heads;
  c.causal = static_cast<Causal>(turn / 2 % 3);
  c.strided = turn / 3 % 2 == 1;
  if (turn / 4 % 2 == 1) c.scale = turn % 8 < 4 ? 0.7 : -0.4;
  c.dtype = kTypes[turn % 4];
  c.compute = c.dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  if (extra >= 1 && extra <= 5) c.mask = kShapes[extra - 1];
  if (extra >= 6) c.bias = kShapes[extra - 6];
  c.seed = static_cast<std::uint64_t>(turn) + 1;
  return c;
}

// `rounds` times all formulas with all extras. The factors are odd, so that the
// sizes and types, whose numbers are small, come in another order each time.
inline std::vector<Case> op_cases(int formula, int rounds) {
  std::vector<Case> cases;
  for (int i = 0; i < rounds * kExtras; ++i) {
    cases.push_back(
        op_case(kEagerFormulas[formula], i % kExtras, 13 * formula + 5 * i));
  }
  return cases;
}

inline constexpr int kEagerFormulaCount =
    static_cast<int>(std::size(kEagerFormulas));

}  // namespace polyattn::test
