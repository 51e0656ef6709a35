// Learning the solution of a differential equation: its points as one batch,
// the model with its loss, evaluation against the exact solution.
#pragma once

#include <torch/types.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "physics/problem.h"
#include "train/examples.h"
#include "train/network.h"
#include "train/run/config.h"
#include "train/run/records.h"
#include "train/run/solution.h"

namespace polyattn::train {

// Of the folder of a run: its problem, as it was when the run began.
inline constexpr const char* kProblemFile = "problem.toml";

class PhysicsExamples : public Examples {
 public:
  explicit PhysicsExamples(const physics::Problem& problem);

  std::int64_t batches_per_epoch() const override { return 1; }
  Batch train_batch(std::int64_t /*index*/) override { return grid_; }
  std::int64_t test_batches() const override;
  Batch test_batch(std::int64_t index) const override;
  std::int64_t test_count() const override { return test_.inputs.size(0); }
  const Batch* whole() const override { return &grid_; }
  const char* unit() const override { return "points"; }

 private:
  Batch grid_;
  Batch test_;
};

// model.name pinnsformer or pinn, of two coordinates.
std::unique_ptr<Network> make_physics_network(
    const run::ModelConfig& model,
    std::shared_ptr<const physics::Problem> problem);

torch::Tensor sum_of(const std::map<std::string, torch::Tensor>& terms);

// The loss on the grid that is trained on, and the relative errors on the other
// one.
run::Evaluation evaluate_physics(
    Network& network, const Examples& examples,
    const std::function<void(double)>& progress = {});

// The exact and the predicted solution on the grid of the evaluation, the
// second coordinate down the rows.
run::Solution solution_of(Network& network, const Examples& examples,
                          const physics::Problem& problem);

// Writes kProblemFile, or if the run goes on, throws run::RecordError where the
// one that is there is another problem.
void keep_problem(const std::filesystem::path& folder,
                  const physics::Problem& problem, bool goes_on);

}  // namespace polyattn::train
