// Attention in linear time in float, compiled for every target.
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/linear_f32.cc"  // this file
#include "hwy/foreach_target.h"                          // IWYU pragma: keep
// Must come after foreach_target.h.
#include "core/kernels/decode-inl.h"
#include "core/kernels/linear-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace polyattn {
namespace HWY_NAMESPACE {

std::int64_t LinearForwardF32(const Problem& problem,
                              const AttentionResults& results,
                              std::byte* workspace, Parallel& parallel) {
  return RunLinearForward<float>(problem, results, workspace, parallel);
}

std::int64_t LinearBackwardF32(const Problem& problem,
                               const AttentionBackwardInputs& inputs,
                               const AttentionGradients& gradients,
                               std::byte* workspace, Parallel& parallel) {
  return RunLinearBackward<float>(problem, inputs, gradients, workspace,
                                  parallel);
}

void FoldF32(const Problem& problem, float* state, std::byte* workspace,
             Parallel& parallel) {
  RunFold<float>(problem, state, workspace, parallel);
}

void ApplyF32(const Problem& problem, float* state, float* sums,
              std::byte* workspace, Parallel& parallel) {
  RunApply<float>(problem, state, sums, workspace, parallel);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace polyattn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "core/dispatch.h"
#include "core/kernels/kernels.h"

namespace polyattn {

HWY_EXPORT(LinearForwardF32);
HWY_EXPORT(LinearBackwardF32);
HWY_EXPORT(FoldF32);
HWY_EXPORT(ApplyF32);

std::int64_t linear_forward_f32(const Problem& problem,
                                const AttentionResults& results,
                                std::byte* workspace, Parallel& parallel) {
  return POLYATTN_DISPATCH(LinearForwardF32)(problem, results, workspace,
                                             parallel);
}

std::int64_t linear_backward_f32(const Problem& problem,
                                 const AttentionBackwardInputs& inputs,
                                 const AttentionGradients& gradients,
                                 std::byte* workspace, Parallel& parallel) {
  return POLYATTN_DISPATCH(LinearBackwardF32)(problem, inputs, gradients,
                                              workspace, parallel);
}

void fold_keys(const Problem& problem, float* state, std::byte* workspace,
               Parallel& parallel) {
  POLYATTN_DISPATCH(FoldF32)(problem, state, workspace, parallel);
}

void apply_state(const Problem& problem, float* state, float* sums,
                 std::byte* workspace, Parallel& parallel) {
  POLYATTN_DISPATCH(ApplyF32)(problem, state, sums, workspace, parallel);
}

}  // namespace polyattn
#endif  // HWY_ONCE
