// polyattn train: one run.
#pragma once

#include "cli/command.h"
#include "cli/training_options.h"

namespace polyattn::cli {

class TrainCommand : public Command {
 public:
  explicit TrainCommand(CLI::App& parent);

  int run() override;

 private:
  TrainingOptions options_;
  bool resume_ = false;
  bool keys_ = false;
};

}  // namespace polyattn::cli
