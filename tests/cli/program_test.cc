#include "cli/program.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/program.h"

namespace polyattn::cli {
namespace program_test {

// Options of every kind that may be an integer, in a command within another.
struct Parsed {
  explicit Parsed(const char* name, const char* value) {
    CLI::App app;
    CLI::App& command = *app.add_subcommand("go");
    command.add_option("--count", count);
    command.add_option("--seed", seed)->check(CLI::PositiveNumber);
    command.add_option("--maybe", maybe);
    command.add_option("--list", list)->delimiter(',');
    command.add_option("--rate", rate);
    command.add_option("--name", text);
    testing::internal::CaptureStderr();
    code = parse_arguments(app, {"go", name, value});
    message = testing::internal::GetCapturedStderr();
  }

  std::int64_t count = 0;
  std::uint64_t seed = 0;
  std::optional<int> maybe;
  std::vector<std::int64_t> list;
  double rate = 0;
  std::string text;
  std::optional<int> code;
  std::string message;
};

TEST(Arguments, IntegersAreNeverOctal) {
  for (const char* name : {"--count", "--seed", "--maybe", "--list"}) {
    const Parsed parsed(name, "010");
    EXPECT_EQ(parsed.code, base::kExitUsage) << name;
    EXPECT_NE(parsed.message.find("010 begins with 0"), std::string::npos)
        << parsed.message;
  }
  EXPECT_EQ(Parsed("--list", "8,010").code, base::kExitUsage);
  EXPECT_EQ(Parsed("--count", "-010").code, base::kExitUsage);
}

TEST(Arguments, OthersMayBeginWithZero) {
  EXPECT_EQ(Parsed("--count", "0").code, std::nullopt);
  EXPECT_EQ(Parsed("--count", "10").count, 10);
  EXPECT_EQ(Parsed("--list", "0,10").list, (std::vector<std::int64_t>{0, 10}));
  EXPECT_EQ(Parsed("--rate", "0.5").rate, 0.5);
  EXPECT_EQ(Parsed("--name", "010").text, "010");
}

// As libtorch's errors have them.
TEST(Program, SaysNothingOfFrames) {
  testing::internal::CaptureStderr();
  const int code = run_program("polyattn", []() -> int {
    throw std::runtime_error(
        "[Gpt] too long\nException raised from forward at gpt.cc:1 (most "
        "recent "
        "call first):\nframe #0: main");
  });
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "polyattn: [Gpt] too long\n");
  EXPECT_EQ(code, base::kExitFailure);
}

}  // namespace program_test
}  // namespace polyattn::cli
