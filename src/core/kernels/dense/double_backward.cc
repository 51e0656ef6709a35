// The double backward kernel in POLYATTN_COMPUTE, float or double, compiled for
// every target.
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/dense/double_backward.cc"  // this file
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// Must come after foreach_target.h.
#include "core/kernels/dense/double-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace polyattn {
namespace HWY_NAMESPACE {
namespace {

void DoubleBackward(const Problem& problem, const AttentionDoubleInputs& second,
                    const AttentionDoubleGradients& gradients,
                    std::byte* workspace, Parallel& parallel) {
  RunDoubleBackward<POLYATTN_COMPUTE>(problem, second, gradients, workspace,
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

HWY_EXPORT(DoubleBackward);

template <typename T>
void dense_double_backward(const Problem& problem,
                           const AttentionDoubleInputs& second,
                           const AttentionDoubleGradients& gradients,
                           std::byte* workspace, Parallel& parallel) {
  POLYATTN_DISPATCH(DoubleBackward)
  (problem, second, gradients, workspace, parallel);
}

template void dense_double_backward<POLYATTN_COMPUTE>(
    const Problem&, const AttentionDoubleInputs&,
    const AttentionDoubleGradients&, std::byte*, Parallel&);

}  // namespace polyattn
#endif  // HWY_ONCE
