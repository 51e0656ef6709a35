// An unknown on the points of a grid, with its derivatives as they are asked
// for, each a function of the weights that made it.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <map>
#include <string>

#include "physics/problem.h"

namespace polyattn::train {

// The points of a grid with both ends, f64: [points^2, 2], the second
// coordinate running faster.
torch::Tensor grid_points(const physics::Problem& problem, std::int64_t points);

class PhysicsField {
 public:
  // The rows [n^2, N, 2] of a grid of n points a side, which need gradients,
  // and the unknown on them [n^2, N, 1].
  PhysicsField(const physics::Problem& problem, torch::Tensor rows,
               torch::Tensor unknown);

  // What is to be zero: [n, n, N].
  torch::Tensor residual(const physics::Expression& equation);

  // The same on the edge of a condition, [n, N] or of the first rows [n].
  torch::Tensor residual(const physics::Condition& condition);

  // The largest |value| of a symbol of the expression, to measure by.
  double largest_symbol(const physics::Expression& expression);

 private:
  // [n, n, N].
  torch::Tensor value(const physics::Symbol& symbol);
  // Of the unknown: by which coordinates it is differentiated.
  const torch::Tensor& derivative(const std::string& by);

  const physics::Problem& problem_;
  torch::Tensor rows_;
  std::int64_t side_;
  std::map<std::string, torch::Tensor> derivatives_;  // [n^2, N]
  std::map<std::string, torch::Tensor> gradients_;    // [n^2, N, 2]
};

// The value of an expression without the unknown at points [P, 2]: [P].
torch::Tensor value_at(const physics::Expression& expression,
                       const physics::Names& names,
                       const torch::Tensor& points);

// The mean squares of what is to be zero: the residual of the equation, and of
// its conditions those of one term summed up ("initial", "boundary").
std::map<std::string, torch::Tensor> physics_terms(
    const physics::Problem& problem, PhysicsField& field);

// Throws run::ConfigError if the exact solution, differentiated by autograd,
// fits the equation or a condition nowhere near rounding.
void check_exact_solution(const physics::Problem& problem);

}  // namespace polyattn::train
