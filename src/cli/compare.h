// polyattn compare: one model under several activations and seeds, side by
// side.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/training_options.h"
#include "train/compare_plan.h"

namespace polyattn::cli {

class CompareCommand : public Command {
 public:
  explicit CompareCommand(CLI::App& parent);

  int run() override;

 private:
  train::ComparePlan make_plan() const;

  TrainingOptions options_;
  std::vector<std::string> activations_ = {
      "softmax,x^2/sqrt(N),x^3/sqrt(N),x^3/sqrt(N){model.start=plain}"};
  int seeds_ = 3;
  int jobs_ = 0;
  std::string budget_;
  std::vector<std::string> grid_;
  int grid_seeds_ = 1;
};

}  // namespace polyattn::cli
