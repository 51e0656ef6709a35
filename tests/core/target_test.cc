// Which target is in use, and how it is chosen.
#include "polyattn/target.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/kernels/kernels.h"
#include "core/random_inputs.h"
#include "support/message_of.h"

namespace polyattn {
namespace {

constexpr char kVariable[] = "POLYATTN_TARGET";

// Leaves the environment and the target as they were.
class Target : public ::testing::Test {
 protected:
  Target() {
    const char* value = std::getenv(kVariable);
    had_ = value != nullptr;
    if (had_) value_ = value;
  }
  ~Target() override {
    if (had_) {
      setenv(kVariable, value_.c_str(), 1);
    } else {
      unsetenv(kVariable);
    }
    force_target("");
  }

 private:
  bool had_;
  std::string value_;
};

TEST_F(Target, TheOneInUseIsAmongTheSupported) {
  const std::vector<std::string> names = supported_targets();
  ASSERT_FALSE(names.empty());
  EXPECT_EQ(std::count(names.begin(), names.end(), target_name()), 1);
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(),
            names.size());
}

TEST_F(Target, TheBestIsTheDefault) {
  unsetenv(kVariable);
  force_target("");
  EXPECT_EQ(target_name(), supported_targets().front());
  setenv(kVariable, "", 1);
  force_target("");
  EXPECT_EQ(target_name(), supported_targets().front());
}

TEST_F(Target, EachCanBeForced) {
  for (const std::string& name : supported_targets()) {
    force_target(name);
    EXPECT_EQ(target_name(), name);
  }
}

TEST_F(Target, CaseDoesNotMatter) {
  const std::string name = supported_targets().back();
  std::string upper = name;
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return std::toupper(c); });
  force_target(upper);
  EXPECT_EQ(target_name(), name);
}

TEST_F(Target, TheEnvironmentIsAsked) {
  for (const std::string& name : supported_targets()) {
    setenv(kVariable, name.c_str(), 1);
    force_target("");
    EXPECT_EQ(target_name(), name);
  }
}

// The message has the name that was asked for and those that there are.
void expect_refused(const std::string& argument, const std::string& wanted) {
  const std::string message =
      test::message_of<std::invalid_argument>([&] { force_target(argument); });
  EXPECT_TRUE(test::contains(message, '"' + wanted + '"')) << message;
  for (const std::string& name : supported_targets())
    EXPECT_TRUE(test::contains(message, name)) << message;
}

TEST_F(Target, AnUnknownNameIsRefusedAndChangesNothing) {
  const std::string last = supported_targets().back();
  force_target(last);
  expect_refused("avx99", "avx99");
  EXPECT_EQ(target_name(), last);
  setenv(kVariable, "mmx", 1);
  expect_refused("", "mmx");
  EXPECT_EQ(target_name(), last);
}

// Targets differ in strip and order of summation, so they must not share a
// workspace size that is too small for one of them.
TEST_F(Target, EachMeasuresItsOwnWorkspace) {
  const test::Instance instance(test::Case{.n = 200, .m = 300});
  SerialParallel serial;
  for (const std::string& name : supported_targets()) {
    SCOPED_TRACE(name);
    force_target(name);
    std::vector<std::byte> room(
        attention_forward_workspace(instance.inputs(), instance.config(), 1));
    test::Outputs out = instance.outputs(DType::kF32);
    EXPECT_NO_THROW(attention_forward(instance.inputs(), instance.config(),
                                      out.results(), room, serial));
    EXPECT_EQ(out.stats[0].non_finite, 0);
  }
}

// Double is compiled for fewer targets: in place of one that it lacks comes the
// next best, not the baseline.
TEST_F(Target, ABetterOneHasNoNarrowerStrips) {
  int width = std::numeric_limits<int>::max();
  for (const std::string& name : supported_targets()) {
    SCOPED_TRACE(name);
    force_target(name);
    EXPECT_LE(strip_width<double>(), width);
    width = strip_width<double>();
  }
}

}  // namespace
}  // namespace polyattn
