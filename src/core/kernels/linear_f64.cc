// Attention in linear time in double, compiled for every target.
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/linear_f64.cc"  // this file
#include "hwy/foreach_target.h"                          // IWYU pragma: keep
// Must come after foreach_target.h.
#include "core/kernels/decode-inl.h"
#include "core/kernels/linear-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace polyattn {
namespace HWY_NAMESPACE {

std::int64_t LinearForwardF64(const Problem& problem,
                              const AttentionResults& results,
                              std::byte* workspace, Parallel& parallel) {
  return RunLinearForward<double>(problem, results, workspace, parallel);
}

std::int64_t LinearBackwardF64(const Problem& problem,
                               const AttentionBackwardInputs& inputs,
                               const AttentionGradients& gradients,
                               std::byte* workspace, Parallel& parallel) {
  return RunLinearBackward<double>(problem, inputs, gradients, workspace,
                                   parallel);
}

void FoldF64(const Problem& problem, double* state, std::byte* workspace,
             Parallel& parallel) {
  RunFold<double>(problem, state, workspace, parallel);
}

void ApplyF64(const Problem& problem, double* state, double* sums,
              std::byte* workspace, Parallel& parallel) {
  RunApply<double>(problem, state, sums, workspace, parallel);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace polyattn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "core/dispatch.h"
#include "core/kernels/kernels.h"

namespace polyattn {

HWY_EXPORT(LinearForwardF64);
HWY_EXPORT(LinearBackwardF64);
HWY_EXPORT(FoldF64);
HWY_EXPORT(ApplyF64);

std::int64_t linear_forward_f64(const Problem& problem,
                                const AttentionResults& results,
                                std::byte* workspace, Parallel& parallel) {
  return POLYATTN_DISPATCH(LinearForwardF64)(problem, results, workspace,
                                             parallel);
}

std::int64_t linear_backward_f64(const Problem& problem,
                                 const AttentionBackwardInputs& inputs,
                                 const AttentionGradients& gradients,
                                 std::byte* workspace, Parallel& parallel) {
  return POLYATTN_DISPATCH(LinearBackwardF64)(problem, inputs, gradients,
                                              workspace, parallel);
}

void fold_keys(const Problem& problem, double* state, std::byte* workspace,
               Parallel& parallel) {
  POLYATTN_DISPATCH(FoldF64)(problem, state, workspace, parallel);
}

void apply_state(const Problem& problem, double* state, double* sums,
                 std::byte* workspace, Parallel& parallel) {
  POLYATTN_DISPATCH(ApplyF64)(problem, state, sums, workspace, parallel);
}

}  // namespace polyattn
#endif  // HWY_ONCE
