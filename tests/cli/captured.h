// A command run within the test, with what it printed.
#pragma once

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "cli/command.h"

namespace polyattn::cli {

struct Outcome {
  int exit_code = -1;
  std::string out, err;
};

// Parse errors are thrown, as CLI::ParseError.
inline Outcome run_captured(CLI::App& app, Command& command,
                            std::vector<std::string> arguments) {
  std::reverse(arguments.begin(), arguments.end());
  app.parse(arguments);
  EXPECT_TRUE(command.chosen());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Outcome outcome;
  try {
    outcome.exit_code = command.run();
  } catch (...) {
    testing::internal::GetCapturedStdout();
    testing::internal::GetCapturedStderr();
    throw;
  }
  outcome.out = testing::internal::GetCapturedStdout();
  outcome.err = testing::internal::GetCapturedStderr();
  return outcome;
}

}  // namespace polyattn::cli
