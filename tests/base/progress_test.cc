#include "base/progress.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "base/text_table.h"

namespace polyattn::base {
namespace {

TEST(ProgressLine, ShowsBarAndTimeLeft) {
  EXPECT_EQ(progress_line(0.5, 80, "case", 80),
            "[##########----------]  50% 1:20 left  case");
}

TEST(ProgressLine, KnowsNothingAtTheStartAndFitsTheTerminal) {
  const std::string line = progress_line(0, INFINITY, "a long label", 40);
  EXPECT_NE(line.find("-:-- left"), std::string::npos);
  EXPECT_LT(display_width(line), 40U);
}

}  // namespace
}  // namespace polyattn::base
