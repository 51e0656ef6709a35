// How far the linear path may be from the reference.
#pragma once

#include "core/random_inputs.h"
#include "polyattn/attention.h"

namespace polyattn::test {

// As error_bound (error_bound.h), for Path::kLinear, with any chunk. There are
// no statistics. Derived in linear_bound.cc.
Outputs linear_bound(const Instance& instance, const Outputs& want,
                     DType storage);

}  // namespace polyattn::test
