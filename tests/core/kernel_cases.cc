#include "core/kernel_cases.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace polyattn::test {

Case with_structure(Case c, int structure, int turn) {
  constexpr Extra kKinds[] = {Extra::kFull, Extra::kPadding, Extra::kHeads,
                              Extra::kRows, Extra::kQueries, Extra::kOne,
                              Extra::kCycle};
  const Extra extra = kKinds[turn % 7], other = kKinds[(turn + 2) % 7];
  const auto grouped = [&] { c.batch = 2, c.heads = 4, c.kv_heads = 2; };
  const auto ragged = [&] {
    c.q_lengths = {c.n, 0, 1, c.n / 2};
    c.k_lengths = {c.m / 2, 3, 0, c.m};
    c.heads = 2;
  };
  if (structure == 1) c.causal = Causal::kFirst;
  if (structure == 2) c.causal = Causal::kLast;
  if (structure == 3) c.batch = 4, c.heads = c.kv_heads = 2, c.mask = extra;
  if (structure == 4) c.batch = 4, c.heads = c.kv_heads = 2, c.bias = extra;
  if (structure == 5) grouped();
  if (structure == 6) ragged();
  if (structure == 7)
    c.mask = extra, c.bias = other, c.heads = 2, c.causal = Causal::kLast;
  if (structure == 8)
    grouped(), c.strided = true, c.causal = Causal::kFirst, c.scale = -0.4;
  if (structure == 9)
    ragged(), c.strided = true, c.causal = Causal::kLast, c.mask = extra,
              c.bias = other;
  return c;
}

Case small_case(int turn) {
  constexpr std::int64_t kN[] = {5, 33, 1, 17, 64, 9};
  constexpr std::int64_t kM[] = {7, 1, 40, 16, 130, 23, 4};
  constexpr std::int64_t kWidth[] = {3, 16, 1, 20, 7};
  Case c;
  c.n = kN[turn % 6], c.m = kM[turn % 7];
  c.d = kWidth[turn % 5], c.e = kWidth[(turn + 1 + turn / 5) % 5];
  c.strided = turn % 3 == 1;
  c.seed = static_cast<std::uint64_t>(turn) + 1;
  return c;
}

namespace {

// One pair of lengths in four; of the four longest pairs one formula in four
// has one.
bool has_share(int formula, int pair, const Case& c) {
  if (light() && c.n * c.m > 10000) return false;
  if (c.n * c.m >= 1000000) return formula == 4 * (pair / 6 % 2 * 2 + pair % 2);
  return (pair + formula) % 4 == 0;
}

}  // namespace

std::vector<Case> awkward_cases(int formula) {
  constexpr std::int64_t kLengths[] = {0, 1, 63, 97, 1000, 1025};
  constexpr std::int64_t kWidths[] = {1, 16, 59, 64, 111, 128};
  std::vector<Case> list;
  for (int pair = 0; pair < 36; ++pair) {
    const int turn = 5 * formula + pair;
    Case c = small_case(turn);
    c.n = kLengths[pair / 6], c.m = kLengths[pair % 6];
    if (!has_share(formula, pair, c)) continue;
    c.d = kWidths[turn % 6], c.e = kWidths[(turn / 6 + pair) % 6];
    c = with_structure(c, turn % kStructures, turn);
    if (c.n * c.m > 10000)
      c.batch = c.kv_heads = 1, c.heads = c.n * c.m < 1000000 ? 2 : 1;
    c.formula = kFormulas[formula];
    c.dtype = kTypes[(turn / 3) % 8].dtype;
    c.compute = kTypes[(turn / 3) % 8].compute;
    if (turn % 4 == 1) c.dropout = 0.3;
    list.push_back(c);
  }
  return list;
}

std::vector<std::string> targets_for(const Case& c) {
  std::vector<std::string> names = supported_targets();
  if (c.n * c.m * (c.d + c.e) > 10000000 && names.size() > 1) names.pop_back();
  return names;
}

std::vector<Case> structure_cases(int formula) {
  std::vector<Case> cases;
  int turn = formula;
  for (int structure = 0; structure < kStructures; ++structure) {
    for (const Types& types : kTypes) {
      ++turn;
      if (light() && turn % 4 != 0) continue;
      Case c = with_structure(small_case(turn), structure, turn);
      c.formula = kFormulas[formula];
      c.dtype = types.dtype, c.compute = types.compute;
      if (turn % 3 == 1) c.dropout = 0.3;
      cases.push_back(c);
    }
  }
  return cases;
}

void take_few_values(Instance& instance) {
  for_each_index(instance.q.tensor.size, [&](const Extents& x) {
    instance.q.set(x, x[2] % 3 == 0 ? -1 : 1);
  });
  for_each_index(instance.k.tensor.size, [&](const Extents& x) {
    instance.k.set(x, static_cast<double>(x[2] * 7 % 16) / 8 - 1);
  });
}

}  // namespace polyattn::test
