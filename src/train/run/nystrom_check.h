// What a config must fulfil for attention by way of landmarks.
#pragma once

#include <vector>

#include "train/run/problems.h"

namespace polyattn::run {

// Parts that it does not have, keys that are for it alone, and more landmarks
// than tokens. The values are each in their range.
std::vector<BadValue> nystrom_problems(const Config& config);

}  // namespace polyattn::run
