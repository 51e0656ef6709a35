// The forward kernel in double, compiled for every target.
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/forward_f64.cc"  // this file
#include "hwy/foreach_target.h"                           // IWYU pragma: keep
// Must come after foreach_target.h.
#include "core/kernels/forward-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace polyattn {
namespace HWY_NAMESPACE {

int StripF64() { return kStrip<double>; }

void ForwardF64(const Problem& problem, const AttentionResults& results,
                std::byte* workspace, Parallel& parallel) {
  RunForward<double>(problem, results, workspace, parallel);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace polyattn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "core/dispatch.h"
#include "core/kernels/kernels.h"

namespace polyattn {

HWY_EXPORT(StripF64);
HWY_EXPORT(ForwardF64);

int strip_f64() { return POLYATTN_DISPATCH(StripF64)(); }

void forward_f64(const Problem& problem, const AttentionResults& results,
                 std::byte* workspace, Parallel& parallel) {
  POLYATTN_DISPATCH(ForwardF64)(problem, results, workspace, parallel);
}

}  // namespace polyattn
#endif  // HWY_ONCE
