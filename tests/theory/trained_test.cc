// Layers of a trained model beside bounds and expectations.
#include "theory/trained.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "polyattn/activation.h"
#include "support/message_of.h"
#include "theory/expectation.h"

namespace polyattn::theory::trained_test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

MeasuredLayer layer(const std::string& activation) {
  return {.name = "layer 1",
          .activation = activation,
          .tokens = 16,
          .width = 8,
          .weight_norm = 2,
          .jacobian_norm = 1,
          .max_abs_score = 3};
}

TrainedRow row_of(const MeasuredLayer& measured) {
  return trained_rows({measured}).at(0);
}

TEST(TrainedRows, OfSoftmaxHaveItsBoundsAndNoExpectation) {
  const TrainedRow row = row_of(layer("softmax"));
  EXPECT_DOUBLE_EQ(row.weight_bound.value(), 4);
  EXPECT_DOUBLE_EQ(row.jacobian_bound.value(), 2);
  EXPECT_FALSE(row.weight_expected);
  EXPECT_TRUE(row.within_bounds);
  MeasuredLayer large = layer("softmax");
  large.weight_norm = 4.1;
  EXPECT_FALSE(row_of(large).within_bounds);
  large = layer("softmax");
  large.jacobian_norm = 2.1;
  EXPECT_FALSE(row_of(large).within_bounds);
}

TEST(TrainedRows, OfPolynomialsHaveTheBoundOfTheirLargestScore) {
  const TrainedRow row = row_of(layer("x^3/sqrt(N)"));
  // 27 / 4 in 256 places, and 27 for the derivative.
  EXPECT_DOUBLE_EQ(row.weight_bound.value(), 27 * 4);
  EXPECT_DOUBLE_EQ(row.jacobian_bound.value(), 27 * 4);
  const Setting setting{.tokens = 16, .width = 8};
  const Activation cubic = Activation::parse("x^3/sqrt(N)");
  EXPECT_DOUBLE_EQ(row.weight_expected.value(),
                   std::sqrt(expected_weight_sq(cubic, setting)));
  EXPECT_DOUBLE_EQ(row.jacobian_expected.value(),
                   std::sqrt(expected_jacobian_sq(cubic, setting)));
}

TEST(TrainedRows, OfSumsOfTermsAddTheirSizes) {
  // |1 - x + x^2/2| <= 1 + 3 + 4.5, and |-1 + x| <= 4, in 256 places.
  const TrainedRow row = row_of(layer("1 - x + x^2/2"));
  EXPECT_DOUBLE_EQ(row.weight_bound.value(), 8.5 * 16);
  EXPECT_DOUBLE_EQ(row.jacobian_bound.value(), 4 * 16);
}

TEST(TrainedRows, OfCausalLayersCountTheKeysThatRowsSee) {
  MeasuredLayer causal = layer("x");
  causal.causal = true;
  EXPECT_DOUBLE_EQ(row_of(causal).weight_bound.value(),
                   3 * std::sqrt(16.0 * 17 / 2));
  causal.activation = "x/sqrt(N)";
  EXPECT_DOUBLE_EQ(row_of(causal).weight_bound.value(), 3 * 4);
}

TEST(TrainedRows, OfOtherActivationsHaveWhatIsKnown) {
  const TrainedRow sum = row_of(layer("x^4/sum"));
  EXPECT_DOUBLE_EQ(sum.weight_bound.value(), 4);
  EXPECT_FALSE(sum.jacobian_bound);
  EXPECT_FALSE(sum.weight_expected);
  const TrainedRow sigmoid = row_of(layer("2*sigmoid"));
  EXPECT_DOUBLE_EQ(sigmoid.weight_bound.value(), 2 * 16);
  EXPECT_DOUBLE_EQ(sigmoid.jacobian_bound.value(), 0.5 * 16);
  const TrainedRow relu = row_of(layer("relu^2/N"));
  EXPECT_DOUBLE_EQ(relu.weight_bound.value(), 9);
  EXPECT_DOUBLE_EQ(relu.jacobian_bound.value(), 6);
}

TEST(TrainedRows, RefuseWhatCannotBe) {
  EXPECT_THROW(row_of(layer("x^3 + y")), FormulaError);
  const auto refusal = [](auto change) {
    MeasuredLayer measured = layer("x");
    change(measured);
    return test::message_of<std::invalid_argument>([&] { row_of(measured); });
  };
  EXPECT_EQ(refusal([](MeasuredLayer& l) { l.tokens = 0; }),
            "[theory] layer 1: tokens 0 < 1");
  EXPECT_EQ(refusal([](MeasuredLayer& l) { l.width = -1; }),
            "[theory] layer 1: width -1 < 1");
  EXPECT_NE(refusal([](MeasuredLayer& l) { l.weight_norm = kNan; }), "");
  EXPECT_NE(refusal([](MeasuredLayer& l) { l.max_abs_score = -2; }), "");
}

// Diverged runs have such norms.
TEST(TrainedRows, AnInfiniteNormIsOutsideOfAFiniteBound) {
  MeasuredLayer measured = layer("softmax");
  measured.weight_norm = kInf;
  EXPECT_FALSE(row_of(measured).within_bounds);
}

TEST(TrainedTable, HasALineForEveryLayer) {
  const std::string table =
      trained_table(trained_rows({layer("softmax"), layer("x^3/sqrt(N)")}));
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 4);
  EXPECT_NE(table.find("x^3/sqrt(N)"), std::string::npos);
  EXPECT_NE(table.find("yes"), std::string::npos);
}

}  // namespace
}  // namespace polyattn::theory::trained_test
