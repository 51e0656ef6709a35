// Evaluates the model of a run again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "train/run/lengths.h"
#include "train/run/records.h"

namespace polyattn::train {

struct EvaluateOptions {
  std::filesystem::path folder;
  bool best = false;        // the weights of the best evaluation, not the last
  bool validation = false;  // on what the run held out, not the test set
  int threads = 1;
  std::string path;  // data from elsewhere; empty: as the run had it
  std::function<void(double)> progress = {};  // share that is done
};

struct RunEvaluation {
  run::Evaluation evaluation;
  std::string task;
  std::string activation;
  std::int64_t step = 0;   // -1 for the best weights
  std::int64_t count = 0;  // examples
};

// Throws std::runtime_error if the loss is not finite, and what load_run()
// throws.
RunEvaluation evaluate_run(const EvaluateOptions& options);

struct RunLengths {
  run::Lengths lengths;
  std::string task;
  std::string activation;
  std::int64_t step = 0;  // -1 for the best weights
};

// The same at several lengths (train/lengths.h). Throws base::UsageError for
// lengths that check_lengths() refuses.
RunLengths evaluate_run_lengths(const EvaluateOptions& options,
                                const std::vector<std::int64_t>& lengths);

}  // namespace polyattn::train
