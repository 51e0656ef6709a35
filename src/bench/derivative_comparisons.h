// What `bench derivatives` measures: second derivatives of attention.
#pragma once

#include <vector>

#include "bench/torch_comparisons.h"

namespace polyattn::bench {

std::vector<Comparison> derivative_comparisons(bool quick);

}  // namespace polyattn::bench
