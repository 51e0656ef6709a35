#include "bench/command.h"

#include <gtest/gtest.h>

#include "base/program.h"
#include "support/message_of.h"

namespace polyattn::bench::command_test {
namespace {

using Words = std::vector<std::string>;

TEST(Command, WithoutANameItIsCore) {
  EXPECT_EQ(with_name({}), Words({"core"}));
  EXPECT_EQ(with_name({"--quick"}), Words({"core", "--quick"}));
  EXPECT_EQ(with_name({"core", "--quick"}), Words({"core", "--quick"}));
  EXPECT_EQ(with_name({"linear"}), Words({"linear"}));
  EXPECT_EQ(with_name({"--help"}), Words({"--help"}));
}

TEST(Command, NamesThatAreNotKnownAreAnError) {
  EXPECT_THROW(with_name({"sideways", "--quick"}), base::UsageError);
}

TEST(Command, FlagsThatBecameNamesSayWhatToType) {
  EXPECT_EQ(test::message_of<base::UsageError>([] {
              with_name({"--quick", "--torch", "--threads", "2"});
            }),
            "bench --torch is now a name: polyattn bench torch --quick "
            "--threads 2");
}

}  // namespace
}  // namespace polyattn::bench::command_test
