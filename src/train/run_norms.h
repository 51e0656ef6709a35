// The norms of a trained model's attention on examples it has not seen, to be
// held against the theory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "train/layer_norms.h"

namespace polyattn::train {

struct RunNormsOptions {
  std::filesystem::path folder;
  bool best = false;  // the weights of the best evaluation, not the last
  int threads = 1;
  std::string path = {};  // data from elsewhere; empty: as the run had it
  // A formula whose norms are measured too, on the same queries and keys.
  std::string other = {};
};

// Root mean squares of ||A||_F over the heads and the batch.
struct LayerRoots {
  double own = 0;
  double other = 0;  // of RunNormsOptions::other
};

struct RunNorms {
  std::string task, activation;
  std::int64_t step = 0;      // -1 for the best weights
  std::int64_t tokens = 0;    // N of the longest sequence
  std::int64_t head_dim = 0;  // D
  bool causal = false;
  std::int64_t examples = 0;       // in the batch
  std::vector<LayerNorms> layers;  // without gradients
  std::vector<LayerRoots> roots;   // of the same layers
};

// Of the first batch of what the run is evaluated on.
RunNorms measure_run_norms(const RunNormsOptions& options);

}  // namespace polyattn::train
