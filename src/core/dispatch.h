// Calls the copy of a kernel that was compiled for the target in use. For files
// that Highway compiles for all targets.
#pragma once

#include "hwy/highway.h"

namespace polyattn {

// Which entry of a table made by HWY_EXPORT to call: that of the best target,
// or of the one that POLYATTN_TARGET or force_target() asks for.
hwy::ChosenTarget& chosen_target();

}  // namespace polyattn

// With one target alone the table has one entry, and there is nothing to
// choose.
#if (HWY_TARGETS & (HWY_TARGETS - 1)) == 0
#define POLYATTN_DISPATCH(FUNCTION) HWY_STATIC_DISPATCH(FUNCTION)
#else
#define POLYATTN_DISPATCH(FUNCTION) \
  (*(HWY_DISPATCH_TABLE(FUNCTION)[::polyattn::chosen_target().GetIndex()]))
#endif
