// Families of N x N matrices of scores, and the norms of softmax that they
// show.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "theory/claims.h"

namespace polyattn::theory {

// What a family of N x N matrices has shown.
struct Extremes {
  std::int64_t tokens = 0;
  std::int64_t samples = 0;
  double smallest = std::numeric_limits<double>::infinity();
  double largest = 0;
  double largest_jacobian = 0;

  void add(double weight_sq, double jacobian_sq);
};

// Of one kind, at several lengths.
struct Family {
  std::string name = {};
  double rounding = 1e-12;  // relative error of a norm
  std::vector<Extremes> lengths = {};
};

// In this order.
inline constexpr std::size_t kOneHotFamily = 0;
inline constexpr std::size_t kTiesFamily = 1;
inline constexpr std::size_t kUniformFamily = 2;

// One-hot rows, two-way ties and uniform rows, where the bounds are reached;
// huge and tiny scores; random ones, in double and by the kernels; and a
// search, which has no smallest norm: it goes one way.
std::vector<Family> softmax_families(const StudyOptions& options,
                                     Parallel& parallel);

}  // namespace polyattn::theory
