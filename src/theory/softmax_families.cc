#include "theory/softmax_families.h"

#include <algorithm>
#include <cmath>

namespace polyattn::theory {
namespace {

// Beyond, scores are drawn for the kernels only, and one search takes seconds.
constexpr std::int64_t kMostDoubleTokens = 256;
constexpr std::int64_t kMostSearchedTokens = 64;
constexpr int kDoubleMatrices = 32;
// exp of minus this is 0 in double: a row with it has exact zeros.
constexpr double kDecisive = 800;

// Relative error of a norm in f32, where a weight has some ten roundings and
// sums run over blocks of keys.
constexpr double kFloatRounding = 1e-5;

// score(i, j) gives a matrix.
template <typename Score>
void add_matrix(Extremes& extremes, const Score& score) {
  const std::int64_t n = extremes.tokens;
  std::vector<double> row(static_cast<std::size_t>(n));
  double weight_sq = 0, jacobian_sq = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      row[static_cast<std::size_t>(j)] = score(i, j);
    }
    weight_sq += softmax_row_sq(row);
    jacobian_sq += softmax_row_jacobian_sq(row);
  }
  extremes.add(weight_sq, jacobian_sq);
}

template <typename Score>
Family structured(const StudyOptions& o, const char* name, const Score& score) {
  Family family{.name = name};
  for (const std::int64_t n : clipped(o.lengths, 2, kMostDoubleTokens)) {
    Extremes extremes{.tokens = n};
    add_matrix(extremes, [&](auto i, auto j) { return score(n, i, j); });
    family.lengths.push_back(extremes);
  }
  return family;
}

Family random_doubles(const StudyOptions& o) {
  Family family{.name = "random, scale 1e-3 to 1e3"};
  for (const std::int64_t n : clipped(o.lengths, 2, kMostDoubleTokens)) {
    Extremes extremes{.tokens = n};
    for (int sample = 0; sample < kDoubleMatrices; ++sample) {
      Random random({o.seed, Stream::kScores, n, sample});
      const double scale = std::pow(10, 6 * random.positive_uniform() - 3);
      add_matrix(extremes, [&](auto, auto) { return scale * random.normal(); });
    }
    family.lengths.push_back(extremes);
  }
  return family;
}

Family random_kernels(const StudyOptions& o, Parallel& parallel) {
  Family family{.name = "Gaussian Q and K, f32 kernels",
                .rounding = kFloatRounding};
  const Activation softmax = Activation::parse("softmax");
  for (const std::int64_t n : o.lengths) {
    SampleRequest request{
        .tokens = n,
        .width = o.width,
        .samples = std::clamp<std::int64_t>(2048 / n, 1, 16),
        .seed = o.seed,
        .stream = Stream::kScores,
        .cases = {{softmax, false, 1.0 / 16}, {softmax}, {softmax, false, 16}}};
    Extremes extremes{.tokens = n};
    for (const SampledNorms& norms : sample_norms(request, parallel)) {
      for (std::size_t i = 0; i < norms.weight_sq.size(); ++i) {
        extremes.add(norms.weight_sq[i], norms.jacobian_sq[i]);
      }
    }
    family.lengths.push_back(extremes);
  }
  return family;
}

Family sought(const StudyOptions& o) {
  Family family{.name = "search by gradient ascent"};
  for (const std::int64_t n : clipped(o.lengths, 2, kMostSearchedTokens)) {
    const SearchOptions search{.tokens = n, .seed = o.seed};
    const SearchResult norm = search_largest(SoftmaxNorm::kWeights, search);
    const SearchResult jacobian =
        search_largest(SoftmaxNorm::kJacobian, search);
    Extremes extremes{.tokens = n};
    extremes.largest = norm.largest;
    extremes.largest_jacobian = jacobian.largest;
    extremes.samples = norm.evaluations;
    family.lengths.push_back(extremes);
  }
  return family;
}

double even_sign(std::int64_t j) { return j % 2 == 0 ? 1 : -1; }

}  // namespace

void Extremes::add(double weight_sq, double jacobian_sq) {
  ++samples;
  smallest = std::min(smallest, std::sqrt(weight_sq));
  largest = std::max(largest, std::sqrt(weight_sq));
  largest_jacobian = std::max(largest_jacobian, std::sqrt(jacobian_sq));
}

std::vector<Family> softmax_families(const StudyOptions& options,
                                     Parallel& parallel) {
  const StudyOptions& o = options;
  return {
      structured(o, "one-hot rows",
                 [](auto, auto i, auto j) { return i == j ? kDecisive : 0.0; }),
      structured(o, "two-way ties",
                 [](auto n, auto i, auto j) {
                   return i == j || (i + 1) % n == j ? kDecisive : 0.0;
                 }),
      structured(o, "uniform rows", [](auto, auto, auto) { return 3.0; }),
      structured(o, "scores 1e300, -1e300",
                 [](auto, auto i, auto j) { return 1e300 * even_sign(i + j); }),
      structured(
          o, "scores 1e-300, -1e-300",
          [](auto, auto i, auto j) { return 1e-300 * even_sign(i + j); }),
      random_doubles(o),
      random_kernels(o, parallel),
      sought(o)};
}

}  // namespace polyattn::theory
