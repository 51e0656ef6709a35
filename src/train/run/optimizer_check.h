// What a config must fulfil for the optimizer that it names.
#pragma once

#include <vector>

#include "train/run/problems.h"

namespace polyattn::run {

// Of L-BFGS: a loss that is one function of the weights in the whole run, and
// no keys that AdamW alone heeds unless it goes first; and the other way round.
// The values are each in their range; `defaults` are those of the task and
// model.
std::vector<BadValue> optimizer_problems(const Config& config,
                                         const Config& defaults);

}  // namespace polyattn::run
