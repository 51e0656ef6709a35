// The forward kernel in POLYATTN_COMPUTE, float or double, compiled for every
// target.
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/dense/forward.cc"  // this file
#include "hwy/foreach_target.h"                             // IWYU pragma: keep
// Must come after foreach_target.h.
#include "core/kernels/dense/forward-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace polyattn {
namespace HWY_NAMESPACE {
namespace {

int Strip() { return kStrip<POLYATTN_COMPUTE>; }

void Forward(const Problem& problem, const AttentionResults& results,
             std::byte* workspace, Parallel& parallel) {
  RunForward<POLYATTN_COMPUTE>(problem, results, workspace, parallel);
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

HWY_EXPORT(Strip);
HWY_EXPORT(Forward);

template <typename T>
int strip_width() {
  return POLYATTN_DISPATCH(Strip)();
}

template <typename T>
void dense_forward(const Problem& problem, const AttentionResults& results,
                   std::byte* workspace, Parallel& parallel) {
  POLYATTN_DISPATCH(Forward)(problem, results, workspace, parallel);
}

template int strip_width<POLYATTN_COMPUTE>();
template void dense_forward<POLYATTN_COMPUTE>(const Problem&,
                                              const AttentionResults&,
                                              std::byte*, Parallel&);

}  // namespace polyattn
#endif  // HWY_ONCE
