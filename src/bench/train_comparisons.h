// What `bench train` measures: whole steps of training, ours against the same
// model in libtorch's own ops, run eagerly.
#pragma once

#include <vector>

#include "bench/torch_comparisons.h"

namespace polyattn::bench {

// The table of goals, or a short selection.
std::vector<Comparison> train_comparisons(bool quick);

}  // namespace polyattn::bench
