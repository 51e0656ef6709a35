#include "core/double_plan.h"

#include <algorithm>

namespace polyattn {

DoublePlan plan_double(const Problem& p, const AttentionDoubleInputs& second,
                       int strip) {
  // Keys of a row that is worked on at once, so that its sums need no walk of
  // their own: four matrices of 64 queries then take 512 KB in f32.
  constexpr std::int64_t kMostWholeKeys = 512;
  DoublePlan plan{plan_backward(p, strip)};
  plan.copy_k = needs_copy(p.in.k, p.compute);
  plan.copy_uk = second.uk && needs_copy(*second.uk, p.compute);
  plan.copy_uv = second.uv && needs_copy(*second.uv, p.compute);
  plan.sums = p.activation.divisor == Divisor::kSum;
  if (plan.sums && plan.chunks == 1 && p.m <= kMostWholeKeys)
    plan.k_block = std::max<std::int64_t>(p.m, 1);
  plan.sums_first = plan.sums && (plan.chunks > 1 || plan.k_block < p.m);
  plan.blocks = ceil_div(p.n, plan.q_step);
  return plan;
}

}  // namespace polyattn
