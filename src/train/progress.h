// How far a run has come: for its checkpoints, and for those who watch it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "train/run/records.h"

namespace polyattn::train {

struct Progress {
  run::RunInfo info;
  std::int64_t metrics_bytes = 0;  // of metrics.jsonl that belong to it
  double loss_sum = 0;             // since the last record
  std::int64_t loss_count = 0;
  std::optional<double> best;   // loss of the best evaluation
  double items_per_second = 0;  // of the last record
  std::string unit;             // of items
  bool evaluating = false;

  // The mean since the last record.
  double loss() const {
    return loss_count > 0 ? loss_sum / static_cast<double>(loss_count) : 0;
  }
};

// What a checkpoint holds of it, which is what changes from step to step: of
// the info the step, times, memory, norms and the last evaluation.
base::Json progress_json(const Progress& progress);
// The inverse. Throws base::JsonError or base::Json::exception.
Progress progress_of(const base::Json& json);

}  // namespace polyattn::train
