// Differences of several activations to one of them, with 95 % intervals that
// hold all at once. docs/config.md derives them.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "train/run/pooling.h"

namespace polyattn::run {

// Over the seeds that have both.
struct Difference {
  int pairs = 0;
  double mean = 0;
  // Of its interval; none with fewer than two pairs.
  std::optional<double> half_width = {};
  bool pooled = false;  // by the pooled variance, or else by its own
};

// What the intervals of several differences are made of.
struct IntervalBasis {
  int intervals = 0;  // that hold all at once
  // Activations over which the variance is pooled, the reference among them; 0
  // if each difference has its own.
  int pooled = 0;
  int degrees = 0;      // of freedom of the pooled variance
  double variance = 0;  // of a difference of one seed: pooled, or the mean
};

struct Differences {
  std::vector<Difference> rows;  // that of the reference is 0, without interval
  IntervalBasis basis;
};

// `resolution` is the step in which figures can differ (one test example), or
// 0: seeds that agree to it still scatter by its rounding.
Differences differences_to(std::size_t reference,
                           const std::vector<SeedFigures>& rows,
                           double resolution);

// How many seeds such intervals take to exclude 0 with a probability of 80 %
// for a true difference of `size`. None if these are more than kMaxSeeds.
inline constexpr int kMaxSeeds = 1000;
std::optional<int> seeds_to_tell(double size, const IntervalBasis& basis);

}  // namespace polyattn::run
