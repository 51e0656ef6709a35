// Attention in linear time: the pairs of a call, as many at once as have
// states.
#if defined(POLYATTN_KERNELS_LINEAR_LINEAR_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYATTN_KERNELS_LINEAR_LINEAR_INL_H_
#undef POLYATTN_KERNELS_LINEAR_LINEAR_INL_H_
#else
#define POLYATTN_KERNELS_LINEAR_LINEAR_INL_H_
#endif

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/decay.h"
#include "core/kernels/linear/call-inl.h"
#include "core/kernels/linear/causal-inl.h"
#include "core/kernels/linear/full-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace polyattn {
namespace HWY_NAMESPACE {

template <typename T>
void EndDecayGradient(const LinearCall<T>& call, Parallel& parallel) {
  const DecayStorage& decay = call.storage.decay;
  const Problem& p = call.p;
  parallel.run(call.plan.pairs(p), [&](std::int64_t pair, int) {
    const HeadOf head = call.head(pair, 0);
    const std::int64_t at = decay.index(head.seq, head.key, 0);
    find_decay_gradient(p, head.b, head.key,
                        {.factor = decay.factor + at,
                         .n = decay.n + at,
                         .row_pull = decay.row_pull,
                         .pull = decay.pull + at});
  });
  call.non_finite +=
      store_decay_gradient(p, decay.pull, *call.out->d_log_decay);
}

// Calls f(call, first pair, pairs); returns what was counted as not finite.
template <typename T, typename F>
std::int64_t RunLinear(const Problem& p, int states,
                       const AttentionResults* results,
                       const AttentionBackwardInputs* inputs,
                       const AttentionGradients* gradients,
                       std::byte* workspace, Parallel& parallel, F&& f) {
  const LinearPlan plan = plan_linear(p, kStrip<T>, states);
  const std::size_t dense =
      p.causal == Causal::kNone || p.decays()
          ? 0
          : dense_chunk_bytes<T>(p, plan, kStrip<T>, states > 1);
  Arena arena(workspace);
  const LinearStorage<T> storage(arena, p, plan, states, dense,
                                 parallel.workers());
  std::atomic<std::int64_t> non_finite = 0;
  const LinearCall<T> call = {p,      plan,      storage,   results,
                              inputs, gradients, non_finite};
  const std::int64_t pairs = plan.pairs(p);
  if (p.decays()) PrepareDecay(call, parallel);
  for (std::int64_t first = 0; first < pairs; first += plan.slots)
    f(call, first, std::min(plan.slots, pairs - first));
  if (gradients != nullptr && gradients->d_log_decay)
    EndDecayGradient(call, parallel);
  return non_finite;
}

template <typename T>
std::int64_t RunLinearForward(const Problem& p, const AttentionResults& results,
                              std::byte* workspace, Parallel& parallel) {
  return RunLinear<T>(
      p, 1, &results, nullptr, nullptr, workspace, parallel,
      [&](const LinearCall<T>& call, std::int64_t first, std::int64_t count) {
        if (p.causal == Causal::kNone) {
          FullForward(call, first, count, parallel);
        } else {
          CausalSweep<T>(call, first, count, parallel).Forward();
        }
      });
}

template <typename T>
std::int64_t RunLinearBackward(const Problem& p,
                               const AttentionBackwardInputs& inputs,
                               const AttentionGradients& gradients,
                               std::byte* workspace, Parallel& parallel) {
  return RunLinear<T>(
      p, 2, nullptr, &inputs, &gradients, workspace, parallel,
      [&](const LinearCall<T>& call, std::int64_t first, std::int64_t count) {
        if (p.causal == Causal::kNone) {
          FullBackward(call, first, count, parallel);
        } else {
          CausalSweep<T>(call, first, count, parallel).Backward();
        }
      });
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace polyattn
HWY_AFTER_NAMESPACE();

#endif
