// solution.json, and its damage.
#include "train/run/solution.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "support.h"

namespace polyattn::run {
namespace solution_test {

using base::Json;
using base::JsonError;
using test::message_of;

Solution small() {
  return {.columns = {"x", {0, 0.5, 1}},
          .rows = {"t", {0, 0.1}},
          .exact = {1, 2, 3, 4, 5, 6},
          .predicted = {1.5, 2, 3, -4, 1e-30, 1.0 / 3}};
}

TEST(SolutionFile, ReadsBackTheSame) {
  const test::TemporaryFolder folder;
  write_solution(folder.path(), small());
  EXPECT_EQ(parse_solution(test::read_text(folder / "solution.json")), small());
  Solution wild = small();
  wild.predicted[1] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(parse_solution(solution_json(wild).dump()), wild);
  wild.predicted[1] = std::nan("");
  EXPECT_TRUE(
      std::isnan(parse_solution(solution_json(wild).dump()).predicted[1]));
}

TEST(SolutionFile, TheLargestFits) {
  Solution large;
  for (std::size_t i = 0; i < kMostSolutionValues; ++i) {
    large.columns.values.push_back(-1.0 / 3 * 1e-100 *
                                   static_cast<double>(1000 - i));
  }
  large.columns.name = std::string(32, 'x');
  large.rows = large.columns;
  large.exact.assign(kMostSolutionValues * kMostSolutionValues,
                     -1.0 / 3 * 1e-100);
  large.predicted = large.exact;
  const std::string text = solution_json(large).dump();
  EXPECT_LE(text.size(), kMaxSolutionBytes);
  EXPECT_EQ(parse_solution(text), large);
}

std::string flaw_of(const Solution& solution) {
  return message_of<std::invalid_argument>([&] { solution_json(solution); });
}

TEST(SolutionFile, IsWrittenWhole) {
  Solution bad = small();
  bad.exact.pop_back();
  EXPECT_EQ(flaw_of(bad), "[solution] \"exact\" has 5 numbers for 6 points");
  bad = small();
  bad.predicted.push_back(0);
  EXPECT_EQ(flaw_of(bad),
            "[solution] \"predicted\" has 7 numbers for 6 points");
  bad = small();
  bad.exact[2] = std::nan("");
  EXPECT_EQ(flaw_of(bad), "[solution] a number of \"exact\" is not finite");
  bad = small();
  bad.columns.values[1] = 0;
  EXPECT_EQ(flaw_of(bad), "[solution] the values of \"columns\" do not rise");
  bad = small();
  bad.rows.values = {0};
  EXPECT_EQ(flaw_of(bad),
            "[solution] \"rows\" has 1 values, must have 2 to 512");
  bad = small();
  bad.rows.name.clear();
  EXPECT_EQ(flaw_of(bad),
            "[solution] the name of \"rows\" has 0 bytes, must have 1 to 32");
}

std::string refusal(const std::string& key, const Json& value) {
  Json json = solution_json(small());
  if (value.is_discarded()) {
    json.erase(key);
  } else {
    json[key] = value;
  }
  return message_of<JsonError>([&] { parse_solution(json.dump()); });
}

TEST(SolutionFile, DamageIsRefused) {
  const Json absent(Json::value_t::discarded);
  EXPECT_EQ(message_of<JsonError>([] { parse_solution("[]"); }),
            "it is no JSON object");
  EXPECT_EQ(refusal("columns", absent), "\"columns\" is missing");
  EXPECT_EQ(refusal("rows", Json::array()), "\"rows\" is no object");
  EXPECT_EQ(refusal("rows", {{"values", {0, 1}}}), "\"name\" is missing");
  EXPECT_EQ(refusal("rows", {{"name", 3}, {"values", {0, 1}}}),
            "the name of \"rows\" is no string");
  EXPECT_EQ(refusal("rows", {{"name", "t"}, {"values", 3}}),
            "\"values\" is no list");
  EXPECT_EQ(refusal("rows", {{"name", "t"}, {"values", {"inf", "nan"}}}),
            "the values of \"rows\" do not rise");
  EXPECT_EQ(refusal("exact", Json::array({1, 2})),
            "\"exact\" has 2 numbers for 6 points");
  EXPECT_EQ(refusal("exact", Json::array({1, 2, "inf", 4, 5, 6})),
            "a number of \"exact\" is not finite");
  EXPECT_THROW(parse_solution(R"({"columns": {"name": "x", "values": [[]]}})"),
               JsonError);
  Json more = solution_json(small());
  more["colour"] = "red";
  EXPECT_EQ(parse_solution(more.dump()), small());
}

}  // namespace solution_test
}  // namespace polyattn::run
