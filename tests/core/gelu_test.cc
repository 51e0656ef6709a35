// gelu against its definition in double, on every target.
#include "polyattn/gelu.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "core/thread_parallel.h"
#include "polyattn/target.h"
#include "support/message_of.h"

namespace polyattn {
namespace {

// The definition.
double gelu(double x) { return x * 0.5 * std::erfc(-x / std::numbers::sqrt2); }

double gelu_derivative(double x) {
  const double density =
      std::exp(-0.5 * x * x) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  return 0.5 * std::erfc(-x / std::numbers::sqrt2) + x * density;
}

constexpr double kUnit = 1.0 / (1 << 24);
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// Roundings in the result, as src/core/kernels/gelu.cc counts them. Without a
// fused multiply-add the exponent t^2/2 is rounded twice, each time by a unit
// of itself, and so is what it says of the value.
double bound_in_units(const std::string& target, double x) {
  const bool fused = target.starts_with("avx");
  return 12 + (fused ? 0 : x * x);
}

std::vector<float> points() {
  std::vector<float> x;
  for (double t = -12.9; t < 16; t += 0.00137) {
    x.push_back(static_cast<float>(t));
  }
  for (const float tiny : {0.0f, 1e-30f, -1e-30f, 1e-6f, -1e-6f}) {
    x.push_back(tiny);
  }
  return x;
}

class EveryTarget : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { force_target(GetParam()); }
  void TearDown() override { force_target(""); }
};

TEST_P(EveryTarget, ForwardIsWithinItsBound) {
  const std::vector<float> x = points();
  std::vector<float> y(x.size(), kNaN);
  SerialParallel serial;
  gelu_forward(x, y, serial);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double exact = gelu(x[i]);
    EXPECT_LE(std::abs(y[i] - exact),
              bound_in_units(GetParam(), x[i]) * kUnit * std::abs(exact))
        << "x = " << x[i];
  }
}

TEST_P(EveryTarget, GradientIsWithinItsBound) {
  const std::vector<float> x = points();
  const std::vector<float> dy(x.size(), -3.0f);
  std::vector<float> dx(x.size(), kNaN);
  SerialParallel serial;
  gelu_backward(x, dy, dx, serial);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double t = x[i];
    const double parts = 0.5 * std::erfc(-t / std::sqrt(2.0)) +
                         std::abs(t) * std::exp(-t * t / 2) * 0.3989422804;
    EXPECT_LE(std::abs(dx[i] + 3 * gelu_derivative(t)),
              3 * bound_in_units(GetParam(), t) * kUnit * parts)
        << "x = " << t;
  }
}

TEST_P(EveryTarget, FarOutAndSpecialValues) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {kInf, 100, -100, kNaN};
  const std::vector<float> one(x.size(), 1.0f);
  std::vector<float> y(x.size()), dx(x.size());
  SerialParallel serial;
  gelu_forward(x, y, serial);
  gelu_backward(x, one, dx, serial);
  EXPECT_EQ(y[0], kInf);
  EXPECT_EQ(y[1], 100);
  EXPECT_EQ(y[2], 0);
  EXPECT_TRUE(std::isnan(y[3]));
  EXPECT_EQ(dx[0], 1);
  EXPECT_EQ(dx[1], 1);
  EXPECT_EQ(dx[2], 0);
  EXPECT_TRUE(std::isnan(dx[3]));
}

INSTANTIATE_TEST_SUITE_P(Targets, EveryTarget,
                         testing::ValuesIn(supported_targets()),
                         [](const auto& target) { return target.param; });

TEST(Gelu, DerivativeIsThatOfTheFunction) {
  for (double x = -5; x < 5; x += 0.173) {
    const double h = 1e-5;
    EXPECT_NEAR((gelu(x + h) - gelu(x - h)) / (2 * h), gelu_derivative(x),
                1e-9);
  }
}

// Lengths around the vector and the task, with a guard behind the end; in
// place; the same bits from two workers.
TEST(Gelu, AnyLengthInPlaceAndInParallel) {
  for (const std::size_t length : {0, 1, 7, 8, 9, 63, 16384, 16385, 40000}) {
    std::vector<float> x(length), y(length + 1, 7.0f);
    for (std::size_t i = 0; i < length; ++i) {
      x[i] = std::sin(static_cast<float>(i));
    }
    SerialParallel serial;
    gelu_forward(x, std::span(y).first(length), serial);
    EXPECT_EQ(y[length], 7.0f);
    if (length > 0) {
      EXPECT_NEAR(y[length - 1], gelu(x[length - 1]), 1e-6);
    }
    test::ThreadParallel threads(2);
    std::vector<float> in_place = x;
    gelu_forward(in_place, in_place, threads);
    y.pop_back();
    EXPECT_EQ(in_place, y) << length;
  }
}

TEST(Gelu, LengthsMustAgree) {
  std::vector<float> x(3), y(2);
  SerialParallel serial;
  EXPECT_EQ(test::message_of<std::invalid_argument>(
                [&] { gelu_forward(x, y, serial); }),
            "[gelu_forward] y length 2 != x length 3");
  EXPECT_THROW(gelu_backward(x, y, x, serial), std::invalid_argument);
  EXPECT_THROW(gelu_backward(x, x, y, serial), std::invalid_argument);
}

}  // namespace
}  // namespace polyattn
