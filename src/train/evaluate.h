// The loss and accuracy of a model over a whole test set.
#pragma once

#include <functional>

#include "train/examples.h"
#include "train/network.h"
#include "train/run/records.h"

namespace polyattn::train {

// Of a text the bits per byte, otherwise the accuracy. `progress` is called
// with the share that is done.
run::Evaluation evaluate(Network& network, const Examples& examples, bool text,
                         const std::function<void(double)>& progress = {});

}  // namespace polyattn::train
