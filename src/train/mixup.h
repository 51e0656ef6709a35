// mixup and cutmix: examples that are made of two.
#pragma once

#include "train/examples.h"
#include "train/random.h"
#include "train/run/config.h"

namespace polyattn::train {

// Image i becomes share * image i + (1 - share) * image B - 1 - i, and `others`
// the targets of the latter.
void mix_with_reverse(Batch& batch);

// A part of image i that has 1 - share of it, but for what its borders cut off,
// becomes that of image B - 1 - i; share becomes what is left.
void paste_from_reverse(Batch& batch, Random& random);

// One of them, or none, as the config says: the share is drawn for the batch.
void mix(const run::AugmentConfig& config, Random& random, Batch& batch);

}  // namespace polyattn::train
