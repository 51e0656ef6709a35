// L-BFGS (Liu and Nocedal) with a line search to the strong Wolfe conditions.
//
//   d = -H g                      two loops over the pairs (s, y) kept
//   t: strong Wolfe along d       first tried: 1
//   s = t d, y = g(w + t d) - g(w), w <- w + t d
//
// A step is one such iteration. The first one, and one after the pairs were
// dropped, goes down the gradient and tries min(1, 1 / |g|_1) first. Pairs are
// dropped when no point along d is lower; if the gradient leads to none either,
// the weights stay as they are from then on.
//
// What a step begins with is the loss and the gradient that the last one ended
// with: the loss must be one function of the weights in the whole run.
// Vectors are of f32, sums over them of double; bits do not depend on the
// number of threads.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "polyattn/models/weights.h"
#include "train/line_search.h"
#include "train/optimizer.h"
#include "train/run/config.h"

namespace polyattn::train {

class Lbfgs : public Optimizer {
 public:
  // Takes the parameters of the module, which must be of f32, and of the
  // options history_size and line_search_steps.
  Lbfgs(const torch::nn::Module& module, const run::TrainConfig& options);

  OptimizerStep step(double lr, const Closure& closure) override;

  // lbfgs.s and lbfgs.y [pairs, parameters], lbfgs.gradient [parameters],
  // lbfgs.loss [1], lbfgs.ended [1]; nothing before the first step.
  models::NamedTensors state() const override;
  std::function<void()> taking(const models::NamedTensors& tensors,
                               std::int64_t steps) override;

 private:
  // The curvature that a step has seen.
  struct Pair {
    torch::Tensor s, y;
    double sy = 0;
  };
  // What is kept from step to step. Tensors are not written to any more.
  struct Kept {
    std::deque<Pair> pairs;
    torch::Tensor gradient;  // undefined before the first step
    double loss = 0;
    bool ended = false;  // nothing lower is to be found
  };

  static Pair make_pair(torch::Tensor s, torch::Tensor y);
  LinePoint evaluate(const Closure& closure) const;
  // The weights become `from` + t `direction`.
  void move(const torch::Tensor& from, double t,
            const torch::Tensor& direction) const;
  torch::Tensor flat_weights() const;
  torch::Tensor take_gradient() const;
  torch::Tensor direction() const;
  double first_length() const;
  LineSearchResult search(const torch::Tensor& direction,
                          const Closure& closure) const;
  void keep(const LinePoint& end, const torch::Tensor& direction);
  std::deque<Pair> pairs_in(const models::NamedTensors& tensors,
                            std::vector<std::string>& problems) const;

  std::size_t most_pairs_;
  std::int64_t line_search_steps_;
  std::vector<torch::Tensor> weights_;
  std::int64_t count_ = 0;  // of all parameters
  Kept kept_;
};

}  // namespace polyattn::train
