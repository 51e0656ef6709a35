// `polyattn bench data`: how many images a second are decoded and augmented,
// and whether a model in training has to wait for them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/options.h"

namespace polyattn::bench {

// Batches alone, nothing else running.
struct LoadingRate {
  std::string augmentation;
  int workers = 0;
  double images_per_second = 0;
};

// A model in training on them. Rates of different rows are not measured side by
// side; the share of the time that was waited is what tells whether it starves.
struct TrainingRate {
  std::string augmentation = {};
  double images_per_second = 0;
  double wait_share = 0;  // of the time
};

struct DataFigures {
  int files = 0;
  double file_bytes = 0;  // mean
  int threads = 0;
  int workers = 0;
  std::vector<LoadingRate> loading = {};
  // One batch again and again: what the model could take.
  double model_images_per_second = 0;
  std::vector<TrainingRate> training = {};
};

// ViT-Tiny (192 wide, 12 deep, 3 heads) on JPEGs of 500 x 375 pixels, which are
// written into a temporary folder. Throws UsageError without torch.
DataFigures bench_data(const Options& options);

std::string data_text(const DataFigures& figures);
nlohmann::ordered_json data_json(const DataFigures& figures);

}  // namespace polyattn::bench
