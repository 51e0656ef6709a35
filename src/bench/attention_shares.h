// What attention takes of what it is a part of.
#pragma once

#include <string>

#include "bench/torch_comparisons.h"

namespace polyattn::bench {

// Attention over channels as XCiT has it, against the whole block, forward and
// backward. It is made of batched products; a kernel of its own is worth
// writing if it takes more than 15 % of the block.
Comparison channels_comparison(const std::string& activation);

// Attention with dropout of its weights, forward and backward, against the same
// without.
Comparison dropout_comparison(const std::string& activation);

}  // namespace polyattn::bench
