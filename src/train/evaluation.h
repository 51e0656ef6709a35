// What an evaluation finds.
#pragma once

#include <optional>

#include "train/run/records.h"

namespace polyattn::train {

// Figures of an evaluation. Which are there depends on the task.
struct Evaluation {
  double loss = 0;
  std::optional<double> accuracy;
  std::optional<double> bits_per_byte;
};

// The last one of a run, from and to run.json.
std::optional<Evaluation> last_evaluation(const run::RunInfo& info);
void set_last_evaluation(run::RunInfo& info, const Evaluation& evaluation);

base::Json evaluation_json(const Evaluation& evaluation);
// The inverse. Throws run::RecordError or base::Json::exception.
Evaluation evaluation_of(const base::Json& json);

}  // namespace polyattn::train
