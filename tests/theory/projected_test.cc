// Norms in the setting of the paper against their definition: the gradients by
// differences of A with respect to every entry of Q, K and X.
#include "theory/projected.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "core/thread_parallel.h"

namespace polyattn::theory::projected_test {
namespace {

using Numbers = std::vector<double>;

ProjectedRequest request() {
  return {.setting = {.tokens = 4,
                      .width = 5,
                      .source = Source::kProjections,
                      .channels = 3,
                      .projection_std = 0.7},
          .max_degree = 3,
          .samples = 3,
          .seed = 4,
          .stream = Stream::kProjections};
}

// The same draws as sample_projected makes: W_Q, W_K, X.
struct Drawn {
  Numbers w_q, w_k, x;
};

Drawn draw(const ProjectedRequest& r, std::int64_t sample) {
  Random random({r.seed, r.stream, r.setting.tokens, sample});
  const auto size =
      static_cast<std::size_t>(r.setting.channels * r.setting.width);
  Drawn d{
      Numbers(size), Numbers(size),
      Numbers(static_cast<std::size_t>(r.setting.tokens * r.setting.channels))};
  for (double& value : d.w_q)
    value = r.setting.projection_std * random.normal();
  for (double& value : d.w_k)
    value = r.setting.projection_std * random.normal();
  for (double& value : d.x) value = random.normal();
  return d;
}

// [n, m] of [n, c] and [c, m]
Numbers times(const Numbers& a, const Numbers& b, std::size_t c) {
  const std::size_t n = a.size() / c, m = b.size() / c;
  Numbers result(n * m);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < m; ++j) {
      for (std::size_t k = 0; k < c; ++k) {
        result[i * m + j] += a[i * c + k] * b[k * m + j];
      }
    }
  }
  return result;
}

Numbers weights(const Numbers& q, const Numbers& k, std::size_t width,
                int degree) {
  const std::size_t n = q.size() / width;
  Numbers a(n * n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      double s = 0;
      for (std::size_t d = 0; d < width; ++d) {
        s += q[i * width + d] * k[j * width + d];
      }
      a[i * n + j] =
          std::pow(s / std::sqrt(static_cast<double>(width)), degree);
    }
  }
  return a;
}

// ||dA/dY||^2 by central differences over the entries of y.
double gradient_sq(Numbers y, const std::function<Numbers(const Numbers&)>& a) {
  constexpr double kStep = 1e-5;
  double sum = 0;
  for (double& entry : y) {
    const double kept = entry;
    entry = kept + kStep;
    const Numbers above = a(y);
    entry = kept - kStep;
    const Numbers below = a(y);
    entry = kept;
    for (std::size_t i = 0; i < above.size(); ++i) {
      sum += std::pow((above[i] - below[i]) / (2 * kStep), 2);
    }
  }
  return sum;
}

TEST(Projected, NormsAreThoseOfTheirDefinition) {
  const ProjectedRequest r = request();
  SerialParallel serial;
  const auto norms = sample_projected(r, serial);
  ASSERT_EQ(norms.size(), 3U);
  for (std::int64_t sample = 0; sample < r.samples; ++sample) {
    const Drawn d = draw(r, sample);
    const Numbers q = times(d.x, d.w_q, 3), k = times(d.x, d.w_k, 3);
    for (int p = 1; p <= r.max_degree; ++p) {
      const ProjectedNorms& n = norms[static_cast<std::size_t>(p - 1)]
                                     [static_cast<std::size_t>(sample)];
      double weight_sq = 0;
      for (const double a : weights(q, k, 5, p)) weight_sq += a * a;
      EXPECT_NEAR(n.weight_sq, weight_sq, 1e-9 * weight_sq);
      const double query =
          gradient_sq(q, [&](const Numbers& y) { return weights(y, k, 5, p); });
      EXPECT_NEAR(n.query_sq, query, 1e-6 * query);
      const double key =
          gradient_sq(k, [&](const Numbers& y) { return weights(q, y, 5, p); });
      EXPECT_NEAR(n.key_sq, key, 1e-6 * key);
      const double input = gradient_sq(d.x, [&](const Numbers& y) {
        return weights(times(y, d.w_q, 3), times(y, d.w_k, 3), 5, p);
      });
      EXPECT_NEAR(n.input_sq, input, 1e-6 * input);
      double jacobian_sq = 0;
      for (const double s : weights(q, k, 5, 1)) {
        jacobian_sq += std::pow(p * std::pow(s, p - 1), 2);
      }
      EXPECT_NEAR(n.jacobian_sq, jacobian_sq, 1e-9 * jacobian_sq);
    }
  }
}

// Tokens that are all the same have scores that are all the same.
TEST(Projected, TokensOfCorrelationOneAreEqual) {
  ProjectedRequest r = request();
  r.model.correlation = 1;
  SerialParallel serial;
  const auto norms = sample_projected(r, serial);
  for (std::size_t i = 0; i < 3; ++i) {
    const double s_sq = norms[0][i].weight_sq / 16;
    EXPECT_NEAR(norms[1][i].weight_sq, 16 * s_sq * s_sq, 1e-9 * s_sq * s_sq);
  }
}

TEST(Projected, ModelsDiffer) {
  SerialParallel serial;
  ProjectedRequest heavy = request();
  heavy.model.heavy_tails = true;
  EXPECT_NE(sample_projected(heavy, serial)[0][0].weight_sq,
            sample_projected(request(), serial)[0][0].weight_sq);
}

TEST(Projected, NormsDoNotDependOnThreads) {
  ProjectedRequest r = request();
  r.samples = 50;
  test::ThreadParallel one(1), two(2, test::TaskOrder::kShuffled);
  const auto a = sample_projected(r, one);
  const auto b = sample_projected(r, two);
  for (std::size_t i = 0; i < 50; ++i) {
    EXPECT_EQ(a[2][i].weight_sq, b[2][i].weight_sq);
    EXPECT_EQ(a[2][i].input_sq, b[2][i].input_sq);
  }
}

}  // namespace
}  // namespace polyattn::theory::projected_test
