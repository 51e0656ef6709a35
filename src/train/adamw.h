// AdamW (Loshchilov and Hutter) with gradient clipping and an exponential
// average of the weights, in one pass over memory.
//
//   g <- g * min(1, clip / |g|)            |g|: norm over all parameters
//   m <- beta1 m + (1 - beta1) g
//   v <- beta2 v + (1 - beta2) g^2
//   w <- w - lr * decay * w                matrices only
//   w <- w - lr * m^ / (sqrt(v^) + eps)    m^, v^: m, v without their bias
//   e <- ema e + (1 - ema) w               of buffers of f32 too
//
// The work is cut by shape, so that the result does not depend on the number of
// threads.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "polyattn/models/weights.h"
#include "train/optimizer.h"
#include "train/run/config.h"

namespace polyattn::train {

class AdamW : public Optimizer {
 public:
  // Takes the parameters of the module, which must be of f32.
  AdamW(const torch::nn::Module& module, const run::TrainConfig& options);

  // The norm of all gradients together; inf or NaN if one of them is. A
  // parameter without a gradient counts as zero.
  double gradient_norm();

  // One step at this rate; `norm` is what gradient_norm() gave. Gradients are
  // dropped afterwards.
  void step(double lr, double norm);
  // One call of the closure, and the above unless something is not finite.
  OptimizerStep step(double lr, const Closure& closure) override;

  // Steps made.
  std::int64_t steps() const { return steps_; }

  // adam.m.NAME, adam.v.NAME and, if there is an average, ema.NAME.
  models::NamedTensors state() const override;
  std::function<void()> taking(const models::NamedTensors& tensors,
                               std::int64_t steps) override;

  bool averages() const { return options_.ema > 0; }
  void swap_average() override;

 private:
  struct Slot {
    std::string name;
    torch::Tensor weight, m, v, average;
    bool decays = false;
  };
  // The running values of a BatchNorm, which belong to the weights.
  struct Buffer {
    std::string name;
    torch::Tensor value, average;
  };
  // A stretch of one parameter: what one task works on.
  struct Piece {
    std::size_t slot;
    std::int64_t first, last;
  };

  void update(const Piece& piece, double lr, double scale);
  double kept_of_average() const;

  run::TrainConfig options_;
  std::vector<Slot> slots_;
  std::vector<Buffer> buffers_;  // empty if there is no average
  std::vector<Piece> pieces_;
  std::int64_t steps_ = 0;
};

// Matrices decay; vectors, positions, class tokens and the learned coefficients
// and scales of an attention do not.
bool decays(const std::string& name, const torch::Tensor& parameter);

}  // namespace polyattn::train
