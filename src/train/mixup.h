// mixup: examples that are mixtures of two.
#pragma once

#include "train/examples.h"

namespace polyattn::train {

// Image i becomes share * image i + (1 - share) * image B - 1 - i, and `others`
// the targets of the latter.
void mix_with_reverse(Batch& batch);

}  // namespace polyattn::train
