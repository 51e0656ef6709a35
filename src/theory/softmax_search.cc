// The search for scores at which softmax, or its Jacobian, has a large norm.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/random.h"
#include "theory/softmax_bound.h"

namespace polyattn::theory {
namespace {

constexpr std::int64_t kMostSearchTokens = 4096;
// Beginnings have a spread between 10^-3 and 10^3.
constexpr double kScaleDecades = 3;
// A row is done when its step has shrunk below the first. The second keeps the
// scores far from overflow.
constexpr double kSmallestStep = 1e-9;
constexpr double kLargestStep = 1024;
// What a step must gain at least, of what the slope at its foot promises.
constexpr double kLeastGain = 0.4;

struct Climb {
  std::vector<double> scores;
  double value = -1;  // squared norm
};

void check_options(const SearchOptions& o) {
  const auto require = [](bool ok, const std::string& message) {
    if (!ok) throw std::invalid_argument("[theory] search: " + message);
  };
  require(o.tokens >= 1 && o.tokens <= kMostSearchTokens,
          "tokens " + std::to_string(o.tokens) + " is not in 1 .. " +
              std::to_string(kMostSearchTokens));
  require(o.starts >= 1, "starts " + std::to_string(o.starts) + " < 1");
  require(o.steps >= 0, "steps " + std::to_string(o.steps) + " < 0");
}

double row_value(SoftmaxNorm norm, std::span<const double> scores) {
  return norm == SoftmaxNorm::kWeights ? softmax_row_sq(scores)
                                       : softmax_row_jacobian_sq(scores);
}

// A way up from a row of scores, and the gain per step along it at its foot.
struct Ascent {
  std::vector<double> direction;
  double slope = 0;
};

// The gradient of the squared norm with respect to the scores is
// p_k (g_k - sum_j p_j g_j), g = d/dp. The climb goes along g_k - sum_j p_j
// g_j, which has the same signs, hence leads upwards too, but does not fade
// where a weight must vanish: there the plain gradient would never arrive.
Ascent ascent(SoftmaxNorm norm, std::span<const double> scores) {
  const std::vector<double> p = softmax_row(scores);
  double sum_sq = 0;
  for (const double x : p) sum_sq += x * x;
  Ascent up{.direction = p};
  double mean = 0;
  for (double& x : up.direction) {
    const double g =
        norm == SoftmaxNorm::kWeights ? 2 * x : x * (2 - 6 * x + 4 * sum_sq);
    mean += x * g;
    x = g;
  }
  for (std::size_t k = 0; k < p.size(); ++k) {
    double& d = up.direction[k];
    d -= mean;
    up.slope += p[k] * d * d;
  }
  return up;
}

// Climbs from row.scores. Returns the number of evaluations.
int climb(SoftmaxNorm norm, int steps, Climb& row) {
  row.value = row_value(norm, row.scores);
  double step = 1;
  Ascent up = ascent(norm, row.scores);
  std::vector<double> trial(row.scores.size());
  int done = 0;
  for (; done < steps && step >= kSmallestStep; ++done) {
    for (std::size_t k = 0; k < trial.size(); ++k) {
      trial[k] = row.scores[k] + step * up.direction[k];
    }
    const double value = row_value(norm, trial);
    // The second condition keeps long steps from leaping to and fro over a
    // ridge.
    if (value > row.value &&
        value >= row.value + kLeastGain * step * up.slope) {
      row.value = value;
      row.scores.swap(trial);
      up = ascent(norm, row.scores);
      step = std::min(2 * step, kLargestStep);
    } else {
      step /= 2;
    }
  }
  return done + 1;
}

Climb random_beginning(std::size_t n, base::Random& random) {
  const double scale =
      std::pow(10, kScaleDecades * (2 * random.positive_uniform() - 1));
  Climb row;
  row.scores.resize(n);
  for (double& score : row.scores) score = scale * random.single_normal();
  return row;
}

}  // namespace

SearchResult search_largest(SoftmaxNorm norm, const SearchOptions& options) {
  check_options(options);
  const auto n = static_cast<std::size_t>(options.tokens);
  base::Random random(options.seed);
  SearchResult result;
  result.scores.reserve(n * n);
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    Climb best;
    for (int start = 0; start < options.starts; ++start) {
      Climb row = random_beginning(n, random);
      result.evaluations += climb(norm, options.steps, row);
      if (row.value > best.value) best = std::move(row);
    }
    sum += best.value;
    result.scores.insert(result.scores.end(), best.scores.begin(),
                         best.scores.end());
  }
  result.largest = std::sqrt(sum);
  return result;
}

}  // namespace polyattn::theory
