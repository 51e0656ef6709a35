// How far the kernel of the double backward may be from its twin.
#pragma once

#include "core/double_cases.h"

namespace polyattn::test {

// |kernel - reference| is at most this, element by element, for outputs of type
// `storage` and rows as the reference gives them. Derived in double_bound.cc.
DoubleOutputs double_bound(DoubleInstance& twin, DType storage);

}  // namespace polyattn::test
