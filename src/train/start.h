// How a run starts: its network with first scores that fit its activation.
#pragma once

#include <memory>
#include <vector>

#include "base/json_text.h"
#include "polyattn/nn/match.h"
#include "train/examples.h"
#include "train/network.h"
#include "train/run/config.h"

namespace polyattn::train {

struct StartedNetwork {
  std::unique_ptr<Network> network;
  std::vector<nn::LayerStart> layers;  // empty: as it was drawn
};

// make_network(), and with model.start matched the first batch of the run to
// measure it by (polyattn/nn/match.h). Throws std::runtime_error if that has
// norms that are not finite.
StartedNetwork start_network(const run::Config& config, const TaskShape& shape,
                             Examples& examples);

// The record of metrics.jsonl (train/run/records.h).
base::Json start_record(const run::Config& config,
                        const std::vector<nn::LayerStart>& layers);

}  // namespace polyattn::train
