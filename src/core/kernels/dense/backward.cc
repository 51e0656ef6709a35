// The backward kernel in POLYATTN_COMPUTE, float or double, compiled for every
// target.
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/dense/backward.cc"  // this file
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// Must come after foreach_target.h.
#include "core/kernels/dense/backward-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace polyattn {
namespace HWY_NAMESPACE {
namespace {

void Backward(const Problem& problem, const AttentionBackwardInputs& inputs,
              const AttentionGradients& gradients, std::byte* workspace,
              Parallel& parallel) {
  RunBackward<POLYATTN_COMPUTE>(problem, inputs, gradients, workspace,
                                parallel);
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace polyattn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "core/dispatch.h"
#include "core/kernels/kernels.h"

namespace polyattn {

HWY_EXPORT(Backward);

template <typename T>
void dense_backward(const Problem& problem,
                    const AttentionBackwardInputs& inputs,
                    const AttentionGradients& gradients, std::byte* workspace,
                    Parallel& parallel) {
  POLYATTN_DISPATCH(Backward)
  (problem, inputs, gradients, workspace, parallel);
}

template void dense_backward<POLYATTN_COMPUTE>(const Problem&,
                                               const AttentionBackwardInputs&,
                                               const AttentionGradients&,
                                               std::byte*, Parallel&);

}  // namespace polyattn
#endif  // HWY_ONCE
