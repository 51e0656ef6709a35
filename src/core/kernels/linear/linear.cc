// Attention in linear time in POLYATTN_COMPUTE, float or double, compiled for
// every target.
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/linear/linear.cc"  // this file
#include "hwy/foreach_target.h"                             // IWYU pragma: keep
// Must come after foreach_target.h.
#include "core/kernels/linear/decode-inl.h"
#include "core/kernels/linear/linear-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace polyattn {
namespace HWY_NAMESPACE {
namespace {

std::int64_t LinearForward(const Problem& problem,
                           const AttentionResults& results,
                           std::byte* workspace, Parallel& parallel) {
  return RunLinearForward<POLYATTN_COMPUTE>(problem, results, workspace,
                                            parallel);
}

std::int64_t LinearBackward(const Problem& problem,
                            const AttentionBackwardInputs& inputs,
                            const AttentionGradients& gradients,
                            std::byte* workspace, Parallel& parallel) {
  return RunLinearBackward<POLYATTN_COMPUTE>(problem, inputs, gradients,
                                             workspace, parallel);
}

void Fold(const Problem& problem, POLYATTN_COMPUTE* state, std::byte* workspace,
          Parallel& parallel) {
  RunFold<POLYATTN_COMPUTE>(problem, state, workspace, parallel);
}

void Apply(const Problem& problem, POLYATTN_COMPUTE* state,
           POLYATTN_COMPUTE* sums, std::byte* workspace, Parallel& parallel) {
  RunApply<POLYATTN_COMPUTE>(problem, state, sums, workspace, parallel);
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

HWY_EXPORT(LinearForward);
HWY_EXPORT(LinearBackward);
HWY_EXPORT(Fold);
HWY_EXPORT(Apply);

template <typename T>
std::int64_t linear_forward(const Problem& problem,
                            const AttentionResults& results,
                            std::byte* workspace, Parallel& parallel) {
  return POLYATTN_DISPATCH(LinearForward)(problem, results, workspace,
                                          parallel);
}

template <typename T>
std::int64_t linear_backward(const Problem& problem,
                             const AttentionBackwardInputs& inputs,
                             const AttentionGradients& gradients,
                             std::byte* workspace, Parallel& parallel) {
  return POLYATTN_DISPATCH(LinearBackward)(problem, inputs, gradients,
                                           workspace, parallel);
}

template <typename T>
void fold_keys(const Problem& problem, T* state, std::byte* workspace,
               Parallel& parallel) {
  POLYATTN_DISPATCH(Fold)(problem, state, workspace, parallel);
}

template <typename T>
void apply_state(const Problem& problem, T* state, T* sums,
                 std::byte* workspace, Parallel& parallel) {
  POLYATTN_DISPATCH(Apply)(problem, state, sums, workspace, parallel);
}

template std::int64_t linear_forward<POLYATTN_COMPUTE>(const Problem&,
                                                       const AttentionResults&,
                                                       std::byte*, Parallel&);
template std::int64_t linear_backward<POLYATTN_COMPUTE>(
    const Problem&, const AttentionBackwardInputs&, const AttentionGradients&,
    std::byte*, Parallel&);
template void fold_keys(const Problem&, POLYATTN_COMPUTE*, std::byte*,
                        Parallel&);
template void apply_state(const Problem&, POLYATTN_COMPUTE*, POLYATTN_COMPUTE*,
                          std::byte*, Parallel&);

}  // namespace polyattn
#endif  // HWY_ONCE
