#include "data/label_files.h"

#include <gtest/gtest.h>

#include "data/support.h"

namespace polyattn::data::label_files_test {
namespace {

using test::error_of;
using test::has;
using Words = std::vector<std::string>;

Words names(std::string_view text, Names kind = Names::kEachOnce) {
  return parse_names(text, kind, "wnids.txt");
}

TEST(Names, AreTheFirstWordsOfLines) {
  EXPECT_EQ(names("n2\nn1\n"), (Words{"n2", "n1"}));
  EXPECT_EQ(names("n2 kit fox, Vulpes\r\n\r\nn1\tsetter"), (Words{"n2", "n1"}));
  EXPECT_EQ(names("n1\nn1\n", Names::kOneAnImage), (Words{"n1", "n1"}));
}

TEST(Names, AreRefusedWithTheirLine) {
  const auto refusal = [](std::string_view text) {
    return error_of([&] { names(text); });
  };
  EXPECT_EQ(refusal("n1\nn2\nn1\n"),
            "wnids.txt, line 3: n1 is there a second time");
  EXPECT_EQ(refusal(""), "wnids.txt: there is nothing in it");
  EXPECT_EQ(refusal("\n\n"), "wnids.txt: there is nothing in it");
  // Nothing that leads out of a folder, and nothing that cannot be seen.
  for (const std::string_view text :
       {"n1\n../n2\n", "n1\n/n2\n", "n1\n.n2\n", "n1\n n2\n", "n1\nn\x01\n",
        "n1\na/b\n"}) {
    EXPECT_EQ(refusal(text), "wnids.txt, line 2: there is no name of a class")
        << text;
  }
  EXPECT_TRUE(has(refusal(std::string(256, 'n')), "line 1: there is no name"));
}

TEST(ValAnnotations, HaveImageAndClass) {
  const auto lines = parse_val_annotations(
      "val_0.JPEG\tn3\t0\t32\t44\t62\nval_1.JPEG\tn1\n", "val_annotations.txt");
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].image, "val_0.JPEG");
  EXPECT_EQ(lines[0].class_name, "n3");
  EXPECT_EQ(lines[1].class_name, "n1");
  for (const std::string_view text :
       {"val_0.JPEG\n", "val_0.JPEG n3\n", "\tn3\n", "a/b.JPEG\tn3\n",
        "val_0.JPEG\t\tn3\n"}) {
    EXPECT_TRUE(has(error_of([&] { parse_val_annotations(text, "v"); }),
                    "v, line 1: there is no name of"))
        << text;
  }
}

TEST(ValSolution, TakesTheClassOfTheFirstBox) {
  const auto lines = parse_val_solution(
      "ImageId,PredictionString\r\n"
      "ILSVRC2012_val_00048981,n3 85 1 499 272 n3 1 2 3 4 \r\n"
      "ILSVRC2012_val_00037956,n2 131 0 499 254 \r\n",
      "LOC_val_solution.csv");
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].image, "ILSVRC2012_val_00048981");
  EXPECT_EQ(lines[0].class_name, "n3");
  EXPECT_EQ(lines[1].class_name, "n2");
  EXPECT_TRUE(has(error_of([] { parse_val_solution("a,n3 1 2\n", "v"); }),
                  "v, line 1: the titles ImageId,PredictionString"));
  EXPECT_TRUE(has(error_of([] { parse_val_solution("ImageId,P\na\n", "v"); }),
                  "v, line 2: there is no name of a class"));
  EXPECT_TRUE(has(error_of([] { parse_val_solution("ImageId,P\n", "v"); }),
                  "v: there is nothing in it"));
}

TEST(GroundTruth, CountsFromOne) {
  EXPECT_EQ(parse_ground_truth("3\n1\n2\r\n", 3, "t"),
            (std::vector<std::int32_t>{2, 0, 1}));
  for (const std::string_view text :
       {"1\n0\n", "1\n4\n", "1\n-1\n", "1\n2.5\n", "1\nx\n", "1\n2x\n",
        "1\n99999999999999999999999\n"}) {
    EXPECT_EQ(error_of([&] { parse_ground_truth(text, 3, "t"); }),
              "t, line 2: a number from 1 to 3 is expected")
        << text;
  }
  EXPECT_EQ(error_of([] { parse_ground_truth("", 3, "t"); }),
            "t: there is nothing in it");
}

}  // namespace
}  // namespace polyattn::data::label_files_test
