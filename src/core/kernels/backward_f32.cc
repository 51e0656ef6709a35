// The backward kernel in float, compiled for every target.
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/backward_f32.cc"  // this file
#include "hwy/foreach_target.h"                            // IWYU pragma: keep
// Must come after foreach_target.h.
#include "core/kernels/backward-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace polyattn {
namespace HWY_NAMESPACE {

void BackwardF32(const Problem& problem, const AttentionBackwardInputs& inputs,
                 const AttentionGradients& gradients, std::byte* workspace,
                 Parallel& parallel) {
  RunBackward<float>(problem, inputs, gradients, workspace, parallel);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace polyattn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "core/dispatch.h"
#include "core/kernels/kernels.h"

namespace polyattn {

HWY_EXPORT(BackwardF32);

void backward_f32(const Problem& problem, const AttentionBackwardInputs& inputs,
                  const AttentionGradients& gradients, std::byte* workspace,
                  Parallel& parallel) {
  POLYATTN_DISPATCH(BackwardF32)
  (problem, inputs, gradients, workspace, parallel);
}

}  // namespace polyattn
#endif  // HWY_ONCE
