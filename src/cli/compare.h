// polyattn compare: one model under several activations and seeds, side by
// side.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/training_options.h"
#include "train/compare_plan.h"
#include "train/run/comparison.h"
#include "train/task_data.h"

namespace polyattn::cli {

class CompareCommand : public Command {
 public:
  explicit CompareCommand(CLI::App& parent);

  bool chosen() const override { return app_->parsed(); }
  int run() override;

 private:
  train::ComparePlan make_plan() const;
  void share_cores(train::ComparePlan& plan) const;
  void apply_budget(train::ComparePlan& plan,
                    const std::shared_ptr<const train::TaskData>& data) const;
  void show(const train::ComparePlan& plan,
            const std::vector<run::RunInfo>& infos) const;

  CLI::App* app_;
  TrainingOptions options_;
  std::vector<std::string> activations_ = {"softmax,x^3/sqrt(N),x/sqrt(N),x^3"};
  int seeds_ = 3;
  int jobs_ = 0;
  std::string budget_;
};

}  // namespace polyattn::cli
