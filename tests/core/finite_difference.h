// Gradients of the reference against finite differences of it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/random_inputs.h"
#include "polyattn/reference.h"

namespace polyattn::test {

inline constexpr double kEps = std::numeric_limits<double>::epsilon();

inline double loss(const Instance& instance) {
  Outputs out = instance.outputs(DType::kF64);
  reference_forward(instance.inputs(), instance.config(), out.results());
  double sum = 0;
  for_each_index(out.o.tensor.size, [&](const Extents& x) {
    sum += at(out.o.tensor, x) * at(instance.d_o.tensor, x);
  });
  return sum;
}

// The central difference with step h is off by c h^2 plus rounding, kEps |L|/h
// times the terms of the loss. Steps h and 2h differ by 3 c h^2, which measures
// the first without knowing c.
inline void expect_gradient(Instance& instance, Buffer& x,
                            const ConstTensor& dx) {
  constexpr double kStep = 0x1p-14, kTerms = 64;
  for_each_index(x.tensor.size, [&](const Extents& index) {
    const double value = at(x.tensor, index);
    double largest = 1;
    const auto slope = [&](double h) {
      x.set(index, value + h);
      const double up = loss(instance);
      x.set(index, value - h);
      const double down = loss(instance);
      x.set(index, value);
      largest = std::max({largest, std::fabs(up), std::fabs(down)});
      return (up - down) / (2 * h);
    };
    const double once = slope(kStep), twice = slope(2 * kStep);
    const double tolerance =
        std::fabs(twice - once) + kTerms * kEps * largest / kStep;
    EXPECT_NEAR(at(dx, index), once, tolerance);
    // Else the test above could not fail.
    EXPECT_LT(tolerance, 1e-4 * (1 + std::fabs(once)));
  });
}

}  // namespace polyattn::test
