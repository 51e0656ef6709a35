// Lengths as a user writes them, and the record of what was found.
#include "train/run/lengths.h"

#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>

#include "support/message_of.h"
#include "support/temporary_folder.h"

namespace polyattn::run {
namespace lengths_test {

using base::Json;
using polyattn::test::message_of;
using List = std::vector<std::int64_t>;

Lengths made_up() {
  return {
      .weights = "best",
      .split = "validation",
      .context = 4,
      .lengths = {{.length = 4,
                   .count = 30,
                   .evaluation = {.loss = 1.5, .bits_per_byte = 2.25},
                   .places = {{1, 10, {.loss = 2, .bits_per_byte = 2.875}},
                              {4, 20, {.loss = 1, .bits_per_byte = 1.5}}}},
                  {.length = 1000,
                   .count = 20,
                   .evaluation = {.loss = INFINITY, .bits_per_byte = INFINITY},
                   .places = {{4, 1, {.loss = 0.5, .bits_per_byte = 0.75}}}}}};
}

std::string flaw_after(const std::function<void(Json&)>& change) {
  Json json = lengths_json(made_up());
  change(json);
  return message_of<base::JsonError>([&] { parse_lengths(json.dump()); });
}

TEST(Lengths, OfAListAreInTheirOrderAndOnce) {
  EXPECT_EQ(parse_length_list("256"), List{256});
  EXPECT_EQ(parse_length_list("1024, 256,1024"), (List{256, 1024}));
  EXPECT_EQ(parse_length_list("1048576"), List{1048576});
  for (const char* wrong : {"", ",", "256,", "0", "-1", "1e3", "1048577", "12x",
                            "+5", "99999999999999999999"}) {
    EXPECT_NE(
        message_of<std::invalid_argument>([&] { parse_length_list(wrong); }),
        "")
        << wrong;
  }
  EXPECT_EQ(
      message_of<std::invalid_argument>([] { parse_length_list("256,1k"); }),
      "\"1k\" is no length: numbers from 1 to 1048576, as 256,1024,4096");
}

TEST(Lengths, AreReadAsTheyWereWritten) {
  const test::TemporaryFolder folder;
  write_lengths(folder.path(), made_up());
  EXPECT_EQ(parse_lengths(test::read_text(folder / "lengths.json")), made_up());
  EXPECT_EQ(flaw_after([](Json& json) {
              json["unknown"] = 1;
              json["lengths"][0]["unknown"] = 1;
            }),
            "");
}

TEST(Lengths, OfADamagedRecordAreRefused) {
  const std::vector<std::pair<std::function<void(Json&)>, const char*>> cases =
      {
          {[](Json& j) { j = 3; }, "it is no JSON object"},
          {[](Json& j) { j["weights"] = "new"; },
           "\"weights\" is neither last nor best"},
          {[](Json& j) { j["split"] = 1; },
           "\"split\" is neither test nor validation"},
          {[](Json& j) { j["context"] = 0; },
           "\"context\" is 0, must be from 1 to 1048576"},
          {[](Json& j) { j.erase("lengths"); }, "\"lengths\" is missing"},
          {[](Json& j) { j["lengths"] = Json(300, j["lengths"][0]); },
           "\"lengths\" is no list of up to 256 entries"},
          {[](Json& j) { j["lengths"][1] = 4; },
           "an entry of \"lengths\" is no object"},
          {[](Json& j) { j["lengths"][1]["length"] = 4; },
           "\"length\" is 4 after 4"},
          {[](Json& j) { j["lengths"][0]["count"] = -1; },
           "\"count\" is -1, must be from 1 to 9007199254740992"},
          {[](Json& j) { j["lengths"][0].erase("loss"); },
           "\"loss\" is missing"},
          {[](Json& j) { j["lengths"][0]["places"][1]["to"] = 5; },
           "\"to\" is 5, must be from 1 to 4"},
          {[](Json& j) { j["lengths"][0]["places"][1]["to"] = 1; },
           "\"to\" is 1 after 1"},
      };
  for (const auto& [change, flaw] : cases) EXPECT_EQ(flaw_after(change), flaw);
  EXPECT_NE(flaw_after([](Json& j) { j["lengths"][0]["loss"] = "many"; }), "");
  EXPECT_NE(message_of<base::JsonError>([] { parse_lengths("{\"weights\":"); }),
            "");
}

TEST(Lengths, AreATable) {
  EXPECT_EQ(lengths_table(made_up()),
            "tokens read      4   1000\n"
            "-----------  -----  -----\n"
            "to 1         2.875\n"
            "to 4         1.500  0.750\n"
            "all          2.250    inf\n");
  EXPECT_STREQ(lengths_figure(made_up()), "bits per byte");
  const Lengths probes{
      .lengths = {{.length = 8, .evaluation = {.accuracy = 0.125}}}};
  EXPECT_STREQ(lengths_figure(probes), "accuracy in %");
  EXPECT_TRUE(polyattn::test::contains(lengths_table(probes), "12.5"));
}

}  // namespace lengths_test
}  // namespace polyattn::run
