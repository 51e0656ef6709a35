// Rounding does not pile up over long texts: states in f32 and f64 that read
// the same tokens, a million of them.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/kernel_cases.h"
#include "polyattn/decode.h"
#include "polyattn/parallel.h"

namespace polyattn {
namespace {

using test::light;

constexpr std::int64_t kD = 4, kE = 4;
constexpr std::int64_t kFold = 48;
constexpr double kUnit = 0x1p-24;

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

DecodeState state_of(const std::string& formula, DType compute,
                     std::int64_t e) {
  return {DecodeShape{1, 1, 1, kD, e},
          {.activation = Activation::parse(formula),
           .mode = DecodeMode::kSums,
           .compute = compute}};
}

// The results in f64, so that what is compared is the state.
Doubles follow(DecodeState& state, const Floats& q, const Floats& k,
               const Floats& v) {
  const std::int64_t tokens = std::ssize(q) / kD, e = state.shape().e;
  const Extents rows = {1, 1, tokens, kD}, out = {1, 1, tokens, e};
  Doubles o(static_cast<std::size_t>(tokens * e));
  SerialParallel serial;
  state.step({.q = view(q.data(), rows),
              .k = view(k.data(), rows),
              .v = view(v.data(), out)},
             view(o.data(), out), serial);
  return o;
}

Floats absolute(Floats x) {
  for (float& value : x) value = std::fabs(value);
  return x;
}

// A column of ones behind v.
Floats with_ones(const Floats& v) {
  Floats wide;
  for (std::size_t i = 0; i < v.size(); ++i) {
    wide.push_back(v[i]);
    if ((i + 1) % kE == 0) wide.push_back(1);
  }
  return wide;
}

// As linear_bound.cc derives, the error of a sum is at most gamma_K times the
// sum of the absolute values, where a product meets its own roundings (32 are
// above these), the tokens of its fold and one addition for each fold: K = 80 +
// length / 48. The sums of absolute values are attention on absolute values,
// over N or sqrt(N) as the results are, which a third state follows in f64.
// Under `sum`, o = s / z, a fourth one gives z / N, and
//
//   error(o) <= (error(s) / z + |o| rho) / (1 - rho),  rho = error(z) / z.
class Drift {
 public:
  Drift(const std::string& formula, std::int64_t step)
      : by_sum_(Activation::parse(formula).divisor == Divisor::kSum),
        step_(step),
        narrow_(state_of(formula, DType::kF32, kE)),
        wide_(state_of(formula, DType::kF64, kE)),
        absolute_(state_of(by_sum_ ? "x^2/N" : formula, DType::kF64, kE + 1)),
        z_(state_of("x^2/N", DType::kF64, 1)) {}

  // Every `stride`-th step is checked, and the last.
  void run(std::int64_t steps, std::int64_t stride) {
    for (std::int64_t i = 0; i < steps; ++i) {
      const Floats q = rows(), k = rows(), v = rows();
      const Doubles got = follow(narrow_, q, k, v);
      const Doubles want = follow(wide_, q, k, v);
      const Doubles sums =
          follow(absolute_, absolute(q), absolute(k), with_ones(absolute(v)));
      const Doubles z =
          follow(z_, q, k, Floats(static_cast<std::size_t>(step_), 1));
      if (i % stride != 0 && i + 1 != steps) continue;
      for (std::size_t j = 0; j < got.size(); ++j) {
        const std::size_t token = j / kE;
        ASSERT_NEAR(got[j], want[j],
                    bound(want[j], sums[j + token],
                          sums[(token + 1) * (kE + 1) - 1], z[token]))
            << "element " << j << " of step " << i;
        error_ += std::pow(got[j] - want[j], 2);
        size_ += std::pow(want[j], 2);
      }
    }
    EXPECT_EQ(narrow_.length(0), steps * step_);
    EXPECT_EQ(narrow_.folded(0), steps * step_ / kFold * kFold);
  }

  // Relative error of what was checked, in the mean.
  double typical() const { return std::sqrt(error_ / size_); }
  // Roundings mostly cancel: this far they walk if they are by chance.
  double walk() const { return std::sqrt(roundings()) * kUnit; }

 private:
  double roundings() const {
    return 80 + static_cast<double>(narrow_.length(0)) / kFold;
  }
  double bound(double o, double sum, double sum_of_weights, double z) const {
    const double gamma = roundings() * kUnit / (1 - roundings() * kUnit);
    if (!by_sum_) return gamma * sum;
    const double rho = gamma * sum_of_weights / z;
    if (!(rho < 1)) return std::numeric_limits<double>::infinity();
    return (gamma * sum / z + std::fabs(o) * rho) / (1 - rho);
  }

  Floats rows() {  // in (-1, 1)
    Floats x(static_cast<std::size_t>(kD * step_));
    for (float& value : x)
      value = static_cast<float>(random_() >> 40) * 0x1p-23F - 1;
    return x;
  }

  bool by_sum_;
  std::int64_t step_;
  DecodeState narrow_, wide_, absolute_, z_;
  std::mt19937_64 random_;
  double error_ = 0, size_ = 0;
};

TEST(DecodeDrift, AMillionTokensAThousandAtATime) {
  for (const char* formula : {"x^2/sqrt(N)", "x^2/sum"}) {
    SCOPED_TRACE(formula);
    Drift drift(formula, 1000);
    drift.run(light() ? 30 : 1000, 50);
    EXPECT_LT(drift.typical(), drift.walk());
  }
}

TEST(DecodeDrift, OneTokenAtATime) {
  for (const char* formula : {"x^2/sqrt(N)", "x^2/sum"}) {
    SCOPED_TRACE(formula);
    Drift drift(formula, 1);
    drift.run(light() ? 600 : 20000, 1);
    EXPECT_LT(drift.typical(), drift.walk());
  }
}

}  // namespace
}  // namespace polyattn
