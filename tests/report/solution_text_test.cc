// Solutions of equations in the document.
#include "report/solution_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/json_text.h"

namespace polyattn::report {
namespace solution_text_test {

using base::Json;

// RFC 4648, without padding in the middle.
std::vector<unsigned> codes_of(const Json& field) {
  static const std::string kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<unsigned> bytes;
  unsigned bits = 0;
  int count = 0;
  for (const char c : field.at("values").get<std::string>()) {
    if (c == '=') break;
    bits = bits << 6U | static_cast<unsigned>(kDigits.find(c));
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(bits >> static_cast<unsigned>(count) & 0xFFU);
  }
  std::vector<unsigned> codes;
  for (std::size_t i = 0; i + 1 < bytes.size(); i += 2) {
    codes.push_back(bytes[i] | bytes[i + 1] << 8U);
  }
  return codes;
}

std::vector<double> values_of(const Json& field) {
  std::vector<double> values;
  for (const unsigned code : codes_of(field)) {
    values.push_back(code == 0xFFFF
                         ? std::nan("")
                         : field.at("low").get<double>() +
                               field.at("step").get<double>() * code);
  }
  return values;
}

run::Solution small() {
  return {.columns = {"x", {0, 0.5, 1}},
          .rows = {"t", {0, 0.1}},
          .exact = {1, 2, 3, 4, 5, 6},
          .predicted = {1.001, 2, 3, 3.999, 5.0005, 6}};
}

// Half a step, which is a 65534th of the range, and the rounding of double.
void expect_near(const std::vector<double>& found,
                 const std::vector<double>& expected, double range) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], range / 65534 * 0.5001) << i;
  }
}

TEST(SolutionText, HasTheNumbersInTwoBytes) {
  const Json json = base::parse_json(solution_text(small()));
  EXPECT_EQ(json.at("columns"), (Json{{"name", "x"}, {"values", {0, 0.5, 1}}}));
  EXPECT_EQ(json.at("rows"), (Json{{"name", "t"}, {"values", {0, 0.1}}}));
  expect_near(values_of(json.at("exact")), {1, 2, 3, 4, 5, 6}, 5);
  // Far finer than the steps of the solution.
  expect_near(values_of(json.at("error")), {1e-3, 0, 0, -1e-3, 5e-4, 0}, 2e-3);
}

TEST(SolutionText, SaysWhatIsNotFinite) {
  run::Solution wild = small();
  wild.predicted[1] = std::numeric_limits<double>::infinity();
  wild.predicted[4] = std::nan("");
  const Json error = base::parse_json(solution_text(wild)).at("error");
  const std::vector<double> values = values_of(error);
  EXPECT_TRUE(std::isnan(values[1]));
  EXPECT_TRUE(std::isnan(values[4]));
  EXPECT_NEAR(values[0], 1e-3, 1e-7);
  wild.predicted.assign(6, std::nan(""));
  const Json none = base::parse_json(solution_text(wild)).at("error");
  EXPECT_EQ(none.at("low"), 0.0);
  EXPECT_EQ(codes_of(none), std::vector<unsigned>(6, 0xFFFF));
}

TEST(SolutionText, TakesNumbersOfAnySize) {
  run::Solution large = small();
  large.exact = {-1e299, 1e299, 1e308, 1e-300, 0, 0};
  large.predicted = {1e299, -1e299, 0, 1e-300, 0, 0};
  const Json json = base::parse_json(solution_text(large));
  const std::vector<double> exact = values_of(json.at("exact"));
  EXPECT_NEAR(exact[0] / 1e299, -1, 1e-9);
  EXPECT_NEAR(exact[1] / 1e299, 1, 1e-4);
  EXPECT_TRUE(std::isnan(exact[2]));
  EXPECT_NEAR(values_of(json.at("error"))[0] / 2e299, 1, 1e-4);
  large.exact.assign(6, 7);
  const Json flat = base::parse_json(solution_text(large));
  EXPECT_EQ(values_of(flat.at("exact")), std::vector<double>(6, 7));
}

TEST(SolutionText, ShowsNoMorePointsThanAScreen) {
  run::Solution large;
  large.columns.name = "x";
  large.rows = {"t", {0, 1}};
  for (int i = 0; i < 500; ++i) large.columns.values.push_back(i);
  for (int i = 0; i < 1000; ++i) large.exact.push_back(i);
  large.predicted = large.exact;
  const Json json = base::parse_json(solution_text(large));
  const Json& shown = json.at("columns").at("values");
  ASSERT_EQ(shown.size(), kMostShownValues);
  EXPECT_EQ(shown.front(), 0);
  EXPECT_EQ(shown.back(), 499);
  const std::vector<double> values = values_of(json.at("exact"));
  ASSERT_EQ(values.size(), 2 * kMostShownValues);
  EXPECT_NEAR(values[1], shown[1].get<double>(), 0.01);
  EXPECT_NEAR(values.back(), 999, 0.01);
}

}  // namespace solution_text_test
}  // namespace polyattn::report
