// Exact expectations against brute force that shares no formula with them: the
// moments of the score by the multinomial theorem; all norms by Gauss-Hermite
// quadrature over every random number (exact for polynomials, at sizes where
// that is feasible) and by Monte Carlo (at larger ones). Derivatives are taken
// entry by entry with dual numbers.
#include "theory/expectation.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numbers>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace polyattn::theory::expectation_test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

// A value and its derivative along one direction.
struct Dual {
  double value = 0, tangent = 0;

  Dual operator+(Dual o) const {
    return {value + o.value, tangent + o.tangent};
  }
  Dual operator*(Dual o) const {
    return {value * o.value, tangent * o.value + value * o.tangent};
  }
};

// A matrix of few entries, row by row. Not on the heap: there are millions.
class Numbers {
 public:
  explicit Numbers(std::size_t size) : size_(size) {
    if (size > entries_.size()) throw std::length_error("Numbers");
  }

  std::size_t size() const { return size_; }
  Dual& operator[](std::size_t i) { return entries_[i]; }
  const Dual& operator[](std::size_t i) const { return entries_[i]; }
  Dual* begin() { return entries_.data(); }
  Dual* end() { return begin() + size_; }
  const Dual* begin() const { return entries_.data(); }
  const Dual* end() const { return begin() + size_; }

 private:
  std::array<Dual, 20> entries_{};
  std::size_t size_;
};

struct Case {
  std::string formula;
  Setting setting;
};

// [n, inner] times [inner, m].
Numbers product(const Numbers& a, const Numbers& b, std::int64_t inner) {
  const std::size_t n = a.size() / inner, m = b.size() / inner;
  Numbers c(n * m);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < static_cast<std::size_t>(inner); ++k) {
      for (std::size_t j = 0; j < m; ++j) {
        c[i * m + j] = c[i * m + j] + a[i * inner + k] * b[k * m + j];
      }
    }
  }
  return c;
}

// q k^T / sqrt(D).
Numbers scores(const Numbers& q, const Numbers& k, const Setting& s) {
  Numbers transposed(k.size());
  for (std::int64_t j = 0; j < s.tokens; ++j) {
    for (std::int64_t d = 0; d < s.width; ++d) {
      transposed[d * s.tokens + j] =
          k[j * s.width + d] * Dual{1 / std::sqrt(s.width), 0};
    }
  }
  return product(q, transposed, s.width);
}

Numbers weights(const Numbers& scores, const Activation& a, const Setting& s) {
  Numbers result(scores.size());
  for (std::int64_t i = 0; i < s.tokens; ++i) {
    const std::int64_t keys = s.causal ? i + 1 : s.tokens;
    const double scale = a.row_scale(static_cast<double>(keys));
    for (std::int64_t j = 0; j < keys; ++j) {
      const std::int64_t at = i * s.tokens + j;
      Dual sum;
      for (int p = a.degree; p >= 0; --p) {
        sum = sum * scores[at] + Dual{a.coefficient[p], 0};
      }
      result[at] = sum * Dual{scale, 0};
    }
  }
  return result;
}

// The squared Frobenius norm of the derivative of f at `inputs`.
template <typename F>
double derivative_sq(Numbers inputs, const F& f) {
  double sum = 0;
  for (Dual& input : inputs) {
    input.tangent = 1;
    for (const Dual& output : f(inputs)) sum += output.tangent * output.tangent;
    input.tangent = 0;
  }
  return sum;
}

// Squared norms of A, dA/dS, dA/dQ, dA/dK and dA/dX (or 0).
using Norms = std::array<double, 5>;
constexpr std::array<const char*, 5> kNames = {"A", "dA/dS", "dA/dQ", "dA/dK",
                                               "dA/dX"};

// How many numbers Q (or X) has, and W_Q.
std::size_t input_count(const Setting& s) {
  return s.tokens * (s.source == Source::kProjections ? s.channels : s.width);
}

std::size_t random_count(const Setting& s) {
  return s.source == Source::kProjections
             ? input_count(s) + 2 * s.channels * s.width
             : 2 * input_count(s);
}

// The norms for one outcome z of the standard normal numbers.
Norms norms_of(const std::vector<double>& z, const Activation& a,
               const Setting& s) {
  const bool projected = s.source == Source::kProjections;
  const std::size_t inputs = input_count(s);
  const std::size_t half = (z.size() - (projected ? inputs : 0)) / 2;
  const auto take = [&z](std::size_t from, std::size_t count, double scale) {
    Numbers result(count);
    for (std::size_t i = 0; i < count; ++i)
      result[i].value = scale * z[from + i];
    return result;
  };
  const double std = projected ? s.projection_std : 1;
  const Numbers x = take(0, inputs, 1);
  const Numbers first = take(projected ? inputs : 0, half, std);
  const Numbers second = take(z.size() - half, half, std);
  const Numbers q = projected ? product(x, first, s.channels) : first;
  const Numbers k = projected ? product(x, second, s.channels) : second;
  const auto by_scores = [&](const Numbers& t) { return weights(t, a, s); };
  const auto by_q = [&](const Numbers& t) {
    return by_scores(scores(t, k, s));
  };
  const auto by_k = [&](const Numbers& t) {
    return by_scores(scores(q, t, s));
  };
  const auto by_x = [&](const Numbers& t) {
    return by_scores(scores(product(t, first, s.channels),
                            product(t, second, s.channels), s));
  };
  Norms norms{};
  for (const Dual& w : by_q(q)) norms[0] += w.value * w.value;
  norms[1] = derivative_sq(scores(q, k, s), by_scores);
  norms[2] = derivative_sq(q, by_q);
  norms[3] = derivative_sq(k, by_k);
  if (projected) norms[4] = derivative_sq(x, by_x);
  return norms;
}

Norms closed_forms(const Activation& a, const Setting& s) {
  return {
      expected_weight_sq(a, s), expected_jacobian_sq(a, s),
      expected_query_gradient_sq(a, s), expected_key_gradient_sq(a, s),
      s.source == Source::kProjections ? expected_input_gradient_sq(a, s) : 0};
}

struct Node {
  double x, weight;
};

// The last two of He_0 .. He_n: He_{k+1} = x He_k - k He_{k-1}.
std::pair<long double, long double> hermite(int n, long double x) {
  long double before = 0, value = 1;
  for (int k = 0; k < n; ++k) {
    before = std::exchange(value, x * value - k * before);
  }
  return {before, value};
}

// n points that integrate polynomials up to degree 2n - 1 against N(0, 1): the
// zeros of He_n, with weights (n - 1)! / (n He_{n-1}^2).
std::vector<Node> gauss_hermite(int n) {
  constexpr long double kGrid = 1.0L / 128;
  const auto negative = [n](long double x) { return hermite(n, x).second < 0; };
  std::vector<Node> nodes;
  const long double end = std::sqrt(4.0L * n + 2);
  for (long double left = -end; left < end; left += kGrid) {
    long double a = left, b = left + kGrid;
    if (negative(a) == negative(b)) continue;
    for (int step = 0; step < 64; ++step) {
      const long double middle = (a + b) / 2;
      (negative(middle) == negative(a) ? a : b) = middle;
    }
    const long double slope = hermite(n, a).first;
    nodes.push_back(
        {static_cast<double>(a),
         static_cast<double>(std::tgamma(1.0L * n) / (n * slope * slope))});
  }
  return nodes;
}

// Adds up weight * norms over all grid points that extend z.
struct Integral {
  const Activation& a;
  const Setting& s;
  std::vector<Node> inner, outer;  // for X, and for everything else
  std::vector<double> z;
  Norms sum{};

  void add(std::size_t index, double weight) {
    if (index == z.size()) {
      const Norms norms = norms_of(z, a, s);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += weight * norms[i];
      return;
    }
    const bool of_x =
        s.source == Source::kProjections && index < input_count(s);
    for (const Node& node : of_x ? inner : outer) {
      z[index] = node.x;
      add(index + 1, weight * node.weight);
    }
  }
};

Norms by_quadrature(const Activation& a, const Setting& s) {
  // phi^2 has degree 2p in each score, hence in each number; 4p in those of X,
  // which a score of a token with itself holds twice.
  Integral integral{.a = a,
                    .s = s,
                    .inner = gauss_hermite(2 * a.degree + 1),
                    .outer = gauss_hermite(a.degree + 1),
                    .z = std::vector<double>(random_count(s))};
  integral.add(0, 1);
  return integral.sum;
}

Setting plain(std::int64_t n, std::int64_t d, bool causal) {
  return {.tokens = n, .width = d, .causal = causal};
}

Setting projected(std::int64_t n, std::int64_t c, std::int64_t d, bool causal) {
  return {.tokens = n,
          .width = d,
          .causal = causal,
          .source = Source::kProjections,
          .channels = c,
          .projection_std = 0.75};
}

std::string text(const Case& c) {
  const Setting& s = c.setting;
  return c.formula + " N " + std::to_string(s.tokens) + " D " +
         std::to_string(s.width) + " C " + std::to_string(s.channels) +
         (s.causal ? " causal" : " full");
}

TEST(Quadrature, IntegratesMonomialsExactly) {
  for (int n = 1; n <= 17; ++n) {
    const std::vector<Node> nodes = gauss_hermite(n);
    ASSERT_EQ(nodes.size(), n);
    double moment = 1;  // (2m - 1)!!
    for (int m = 0; 2 * m < 2 * n; moment *= 2 * m + 1, ++m) {
      double sum = 0;
      for (const Node& node : nodes) {
        sum += node.weight * std::pow(node.x, 2 * m);
      }
      EXPECT_NEAR(sum / moment, 1, 1e-13) << n << ' ' << m;
    }
  }
}

// The quadrature adds up to 2e5 products of positive numbers: 1e-12 is several
// times the error that n roundings can make together at random, and far below
// any wrong coefficient.
TEST(Expectation, EqualsQuadrature) {
  const std::vector<Case> cases = {
      {"x^3/sqrt(N)", plain(2, 2, false)},
      {"1 - 2x + x^2/2", plain(2, 2, true)},
      {"(x - x^2)/N", plain(3, 1, true)},
      {"x^2 - 1", plain(1, 3, false)},
      {"(1 + x)^8/sqrt(N)", plain(2, 1, true)},
      {"3", plain(2, 2, true)},
      {"x/sqrt(N)", projected(2, 2, 2, false)},
      {"1 + x", projected(1, 3, 1, false)},
      {"x^2/sqrt(N)", projected(2, 2, 1, true)},
      {"1 - x + x^2/3", projected(1, 2, 2, false)},
      {"(x^3 - 2x)/N", projected(2, 1, 2, false)},
      {"(x + 2x^2)/sqrt(N)", projected(3, 1, 1, true)},
      {"(0.5 + x)^8", projected(2, 1, 1, true)},
  };
  for (const Case& c : cases) {
    const Activation a = Activation::parse(c.formula);
    const Norms exact = by_quadrature(a, c.setting);
    const Norms closed = closed_forms(a, c.setting);
    for (std::size_t i = 0; i < exact.size(); ++i) {
      EXPECT_NEAR(closed[i], exact[i], 1e-12 * exact[i])
          << kNames[i] << ' ' << text(c);
    }
  }
}

// E[(q_1 k_1 + .. + q_D k_D)^power], one product after the other by the
// binomial theorem, with E q^(2a) = (2a - 1)!!.
long double moment_by_expansion(int power, int width) {
  std::vector<long double> moment(power + 1);
  moment[0] = 1;
  for (int d = 0; d < width; ++d) {
    std::vector<long double> next(power + 1);
    for (int total = 0; total <= power; ++total) {
      long double binomial = 1, normal = 1;
      for (int a = 0; a <= total; ++a) {
        if (a % 2 == 0) {
          next[total] += binomial * normal * normal * moment[total - a];
          normal *= a + 1;
        }
        binomial *= static_cast<long double>(total - a) / (a + 1);
      }
    }
    moment = next;
  }
  return moment[power] / std::pow(1.0L * width, 0.5L * power);
}

TEST(ScoreMoment, EqualsTheExpansion) {
  for (int width = 1; width <= 40; ++width) {
    for (int power = 0; power <= 2 * kMaxDegree; ++power) {
      const auto exact = static_cast<double>(moment_by_expansion(power, width));
      // Two roundings for each of the at most eight factors, with room.
      EXPECT_NEAR(score_moment(power, width), exact, 1e-14 * exact)
          << "power " << power << " width " << width;
    }
  }
}

TEST(ScoreMoment, KnowsItsLimits) {
  EXPECT_EQ(score_moment(2, 64), 1);
  EXPECT_EQ(score_moment(3, 64), 0);
  // One wide head: the score itself is nearly normal, 15!! = 2027025.
  EXPECT_NEAR(score_moment(16, std::int64_t{1} << 60), 2027025, 1e-6);
  EXPECT_THROW(score_moment(-2, 4), std::invalid_argument);
  EXPECT_THROW(score_moment(2, 0), std::invalid_argument);
  EXPECT_THROW(score_moment(std::numeric_limits<int>::max() - 1, 4),
               std::overflow_error);
}

// splitmix64 and Box-Muller.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  double normal() {
    const double length = std::sqrt(-2 * std::log(uniform()));
    return length * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  double uniform() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return static_cast<double>(((z ^ (z >> 31)) >> 11) + 1) * 0x1p-53;
  }

  std::uint64_t state_;
};

struct Estimate {
  double mean, error;  // of the mean
};

std::array<Estimate, 5> by_sampling(const Activation& a, const Setting& s,
                                    std::uint64_t seed) {
  constexpr int kSamples = 5000;
  Random random(seed);
  std::vector<double> z(random_count(s));
  Norms sum{}, sum_sq{};
  for (int sample = 0; sample < kSamples; ++sample) {
    for (double& number : z) number = random.normal();
    const Norms norms = norms_of(z, a, s);
    for (std::size_t i = 0; i < norms.size(); ++i) {
      sum[i] += norms[i];
      sum_sq[i] += norms[i] * norms[i];
    }
  }
  std::array<Estimate, 5> estimates{};
  for (std::size_t i = 0; i < sum.size(); ++i) {
    const double mean = sum[i] / kSamples;
    const double variance = sum_sq[i] / kSamples - mean * mean;
    estimates[i] = {mean, std::sqrt(std::fmax(variance, 0) / (kSamples - 1))};
  }
  return estimates;
}

// Six standard errors: a normal variable is beyond them once in 5e8, so the 36
// comparisons below would raise a false alarm with a probability below 1e-7, if
// means of 5000 were normal. They are not quite: norms are sums of products of
// normal numbers, up to 16 of them, and the tails grow with the degree. Hence
// degrees up to 2 (the quadrature has the others) and fixed seeds. That errors
// are at most 5 % makes sure that the comparison means something.
TEST(Expectation, AgreesWithMonteCarlo) {
  std::vector<Case> cases;
  for (const bool causal : {false, true}) {
    cases.push_back({"(x + x^2)/sqrt(N)", plain(4, 5, causal)});
    cases.push_back({"(1 + x - x^2)/N", plain(3, 6, causal)});
    cases.push_back({"x/sqrt(N)", projected(4, 5, 3, causal)});
    cases.push_back({"1 + x + x^2/20", projected(3, 3, 5, causal)});
  }
  std::uint64_t seed = 20;
  for (const Case& c : cases) {
    const Activation a = Activation::parse(c.formula);
    const Norms closed = closed_forms(a, c.setting);
    const std::array<Estimate, 5> sampled = by_sampling(a, c.setting, seed++);
    for (std::size_t i = 0; i < closed.size(); ++i) {
      EXPECT_NEAR(sampled[i].mean, closed[i], 6 * sampled[i].error + 1e-12)
          << kNames[i] << ' ' << text(c);
      EXPECT_LE(sampled[i].error, 0.05 * closed[i]) << kNames[i] << text(c);
    }
  }
}

// Row by row, from a token that sees itself (N = 1) and two that see each
// other.
TEST(Expectation, AddsUpCausalRows) {
  for (const char* formula : {"x^3", "x^3/sqrt(N)", "(1 - x^3)/N"}) {
    const Activation a = Activation::parse(formula);
    Activation bare = a;
    bare.divisor = Divisor::kOne;
    const Norms one = closed_forms(bare, projected(1, 6, 4, false));
    const Norms two = closed_forms(bare, projected(2, 6, 4, false));
    for (const std::int64_t tokens : {1, 2, 7, 4095, 4096, 9000}) {
      const Norms closed = closed_forms(a, projected(tokens, 6, 4, true));
      for (std::size_t i = 0; i < closed.size(); ++i) {
        const long double itself = one[i];
        const long double other = (two[i] - 2 * itself) / 2;
        long double sum = 0;
        for (std::int64_t n = 1; n <= tokens; ++n) {
          const long double scale = a.divisor == Divisor::kOne ? 1.0L
                                    : a.divisor == Divisor::kSqrtN
                                        ? 1.0L / n
                                        : 1.0L / n / n;
          sum += scale * (itself + (n - 1) * other);
        }
        EXPECT_NEAR(closed[i], sum, 2e-14 * sum)
            << kNames[i] << ' ' << formula << ' ' << tokens;
      }
    }
  }
}

TEST(Expectation, GrowsAsTheTheorySays) {
  const auto growth = [](const char* formula, bool causal) {
    const Activation a = Activation::parse(formula);
    return expected_weight_sq(a, plain(4096, 64, causal)) /
           expected_weight_sq(a, plain(1024, 64, causal));
  };
  EXPECT_NEAR(growth("x^3", false), 16, 1e-12);
  EXPECT_NEAR(growth("x^3/sqrt(N)", false), 4, 1e-12);
  EXPECT_NEAR(growth("x^3/sqrt(N)", true), 4, 1e-12);
  EXPECT_NEAR(growth("x^3/N", false), 1, 1e-12);
  // The row form: N E phi^2, whether causal or not.
  const Activation a = Activation::parse("(x + x^2)/sqrt(N)");
  const double phi_sq = score_moment(2, 8) + score_moment(4, 8);
  for (const bool causal : {false, true}) {
    for (const std::int64_t n : {1, 2, 100, 100000}) {
      EXPECT_NEAR(expected_weight_sq(a, plain(n, 8, causal)) / (n * phi_sq), 1,
                  1e-14);
    }
  }
}

TEST(Expectation, IsFiniteWhereModelsLive) {
  const Activation a = Activation::parse("x^8");
  for (const bool causal : {false, true}) {
    Setting s = projected(std::int64_t{1} << 40, 4096, 4096, causal);
    s.projection_std = 1;
    for (const double value : closed_forms(a, s)) {
      EXPECT_TRUE(std::isfinite(value));
      EXPECT_GT(value, 0);
    }
    EXPECT_GT(expected_weight_sq(
                  Activation::parse("x^8/N"),
                  plain(std::numeric_limits<std::int64_t>::max(), 1, causal)),
              0);
  }
}

TEST(Expectation, ThrowsRatherThanReturnInfinity) {
  Setting s = projected(4, 64, 64, false);
  s.projection_std = 1e30;
  EXPECT_THROW(expected_weight_sq(Activation::parse("x^8"), s),
               std::overflow_error);
  EXPECT_THROW(expected_weight_sq(Activation::parse("1e200*x - 1e200*x^3"), s),
               std::overflow_error);
  EXPECT_GT(expected_weight_sq(Activation::parse("x"), s), 0);
  // The coefficient brings back what the projections blow up.
  Activation a = Activation::parse("x^8");
  a.coefficient[8] = 1e-300;
  s.projection_std = 1e20;
  Setting unit = s;
  unit.projection_std = 1;
  EXPECT_NEAR(expected_weight_sq(a, s) * 1e-40 /
                  expected_weight_sq(Activation::parse("x^8"), unit),
              1, 1e-13);
}

TEST(Expectation, TakesProjectionsOfZero) {
  Setting s = projected(3, 2, 2, false);
  s.projection_std = 0;
  const Activation a = Activation::parse("2 + x^2");
  EXPECT_EQ(expected_weight_sq(a, s), 36);
  EXPECT_EQ(expected_input_gradient_sq(a, s), 0);
}

template <typename F>
std::string refusal(const F& f) {
  try {
    f();
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "accepted";
}

TEST(Expectation, RefusesOtherActivations) {
  for (const char* formula : {"softmax", "sigmoid", "relu^2/N", "x^4/sum"}) {
    const Activation a = Activation::parse(formula);
    const std::string message =
        refusal([&a] { expected_weight_sq(a, plain(2, 2, false)); });
    EXPECT_EQ(message.rfind("[theory] no exact expectation", 0), 0) << message;
    EXPECT_NE(message.find(a.to_string()), std::string::npos) << message;
    EXPECT_THROW(expected_jacobian_sq(a, plain(2, 2, false)),
                 std::invalid_argument);
    EXPECT_THROW(expected_input_gradient_sq(a, projected(2, 2, 2, false)),
                 std::invalid_argument);
  }
  Activation broken = Activation::parse("x^2");
  broken.degree = kMaxDegree + 1;
  EXPECT_EQ(refusal([&] { expected_weight_sq(broken, plain(2, 2, false)); }),
            "[theory] degree 9 is not in 0 .. 8");
  broken = Activation::parse("x^2");
  broken.coefficient[1] = kNan;
  EXPECT_EQ(refusal([&] { expected_weight_sq(broken, plain(2, 2, false)); }),
            "[theory] coefficient nan is not finite");
}

TEST(Expectation, RefusesSettingsWithoutSense) {
  const Activation a = Activation::parse("x^3/sqrt(N)");
  const auto message = [&a](const Setting& s) {
    return refusal([&] { expected_key_gradient_sq(a, s); });
  };
  EXPECT_EQ(message(plain(0, 4, false)), "[theory] tokens 0 < 1");
  EXPECT_EQ(message(plain(4, 0, true)), "[theory] width 0 < 1");
  EXPECT_EQ(message(projected(4, -1, 4, true)), "[theory] channels -1 < 1");
  for (const double bad : {kNan, kInf, -1.0}) {
    Setting s = projected(4, 4, 4, false);
    s.projection_std = bad;
    EXPECT_EQ(message(s).rfind("[theory] projection_std", 0), 0) << message(s);
    // Queries and keys of their own do not know it.
    s.source = Source::kQueriesKeys;
    EXPECT_EQ(message(s), "accepted");
  }
  EXPECT_EQ(refusal([&a] {
              expected_input_gradient_sq(a, plain(4, 4, false));
            }).rfind("[theory] dA/dX needs a setting with projections", 0),
            0);
}

}  // namespace
}  // namespace polyattn::theory::expectation_test
