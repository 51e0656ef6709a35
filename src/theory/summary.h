// Means of measurements and how far they can be trusted.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace polyattn::theory {

struct Interval {
  double low = 0;
  double high = 0;

  bool contains(double x) const { return low <= x && x <= high; }
};

// What is printed beside a measured value is its 99 % interval.
inline constexpr double kShownTail = 0.01;

// A claim is given up only when chance alone would do the same once in ten
// million comparisons: a run of a thousand comparisons then raises a false
// alarm once in ten thousand seeds.
inline constexpr double kDecisionTail = 1e-7;

struct Summary {
  std::int64_t count = 0;
  double mean = 0;
  double deviation = 0;  // with n - 1; 0 for a single value
  double skewness = 0;   // 0 without spread
};

Summary summarize(std::span<const double> values);

// P(|Z| > z) = tail for a normal Z.
double normal_quantile(double tail);

// Covers the mean with probability 1 - tail, by Student's t with Hall's cubic
// transformation, which takes out what skewness does to t: a sample that
// happens to miss the rare large values has too small a mean and too small a
// deviation at once. Symmetric for a symmetric sample. Needs two values.
Interval mean_interval(const Summary& summary, double tail);

// Whether the sample can speak for its own tails: at least 100 values, a mean
// of little relative error, and of little skewness. Otherwise a handful of
// values may carry the mean, some of which may be missing, and no interval that
// is made of the sample holds far out.
bool speaks_for_itself(const Summary& summary);

// The estimate of Catoni (2012) for a mean whose variance is known. It misses
// the mean by more than robust_half_width with probability `tail` at most,
// whatever the distribution; the plain mean has no such guarantee, because one
// huge value in a sample moves it at will. Needs robust_least_count values.
double robust_mean(std::span<const double> values, double variance,
                   double tail);
double robust_half_width(double variance, std::int64_t count, double tail);
std::int64_t robust_least_count(double tail);

struct Median {
  double value = 0;
  std::optional<Interval> interval = {};  // none of too few values
};

// The median, between order statistics that enclose it with probability
// 1 - tail whatever the distribution. Needs a value.
Median median_of(std::span<const double> values, double tail);

}  // namespace polyattn::theory
