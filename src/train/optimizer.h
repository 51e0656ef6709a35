// A step of training, by any method: what it needs of the loss, and what a run
// needs of it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "polyattn/models/weights.h"

namespace polyattn::train {

struct OptimizerStep {
  double loss = 0;  // at the weights with which the step began
  double gradient_norm = 0;
  double lr = 0;  // the rate, or the length of the step along its direction
  // The step was not made, because something is not finite. What that was, if
  // it is neither the loss nor the gradient at the weights of the beginning.
  bool diverged = false;
  std::optional<std::string> what = {};
};

class Optimizer {
 public:
  // The loss at the current weights. Leaves its gradient in the gradients of
  // the parameters, which are undefined before. Within a step it is one
  // function of the weights.
  using Closure = std::function<double()>;

  virtual ~Optimizer() = default;

  // Calls the closure once or more often. `lr` is what the schedule says; not
  // every method heeds it. Gradients are dropped afterwards.
  virtual OptimizerStep step(double lr, const Closure& closure) = 0;

  // What the steps to come depend on beside the weights, by names of its own.
  virtual models::NamedTensors state() const = 0;

  // What makes a state of so many steps its own, which cannot fail any more.
  // Throws models::WeightsError if a tensor is missing or does not fit.
  virtual std::function<void()> taking(const models::NamedTensors& tensors,
                                       std::int64_t steps) = 0;
  void load_state(const models::NamedTensors& tensors, std::int64_t steps) {
    taking(tensors, steps)();
  }

  // Exchanges weights and buffers with their averages, if it keeps any: twice
  // is nothing.
  virtual void swap_average() {}
};

// The tensor of that name with the shape and type of `like`; otherwise a line
// in `problems`, and nothing.
torch::Tensor take_tensor(const models::NamedTensors& tensors,
                          const std::string& name, const torch::Tensor& like,
                          std::vector<std::string>& problems);

}  // namespace polyattn::train
