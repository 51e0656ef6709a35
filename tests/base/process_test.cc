#include "base/process.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "support/temporary_folder.h"

namespace polyattn::base {
namespace process_test {

// A line of shell, which tests have at hand everywhere.
Command shell(const std::string& line) {
  return {.arguments = {"sh", "-c", line}};
}

TEST(Process, GivesTheOutput) {
  const CommandOutput output = output_of(shell("printf 'a b'; cat"));
  EXPECT_TRUE(output.end.ended_well()) << output.end.reason;
  EXPECT_EQ(output.text, "a b");  // cat has nothing to read
}

TEST(Process, ArgumentsAreNotInterpreted) {
  EXPECT_EQ(output_of({.arguments = {"printf", "%s", "$HOME `x` 'y'"}}).text,
            "$HOME `x` 'y'");
}

TEST(Process, NamesTheEnd) {
  EXPECT_EQ(output_of(shell("exit 3")).end.reason, "exit code 3");
  EXPECT_EQ(output_of(shell("kill -9 $$")).end.reason, "signal 9");
  const CommandEnd end =
      output_of({.arguments = {"polyattn-there-is-none"}}).end;
  EXPECT_FALSE(end.found);
  EXPECT_EQ(end.reason, "there is no such program");
}

TEST(Process, TheLogHasItsLastWords) {
  const test::TemporaryFolder folder;
  Command command = shell("for i in 1 2 3 4; do echo $i >&2; done; exit 1");
  command.log = folder / "log";
  EXPECT_EQ(output_of(command).end.reason, "exit code 1: \"2\\n3\\n4\"");
  EXPECT_EQ(test::read_text(command.log), "1\n2\n3\n4\n");
}

TEST(Process, RunsInAFolderWithVariables) {
  const test::TemporaryFolder folder;
  folder.write("here", "found");
  Command command = shell("cat here; printf %s \"$HOME$POLYATTN_NEW\"");
  command.folder = folder.path();
  command.variables = {{"HOME", "/of/a/test"}, {"POLYATTN_NEW", "!"}};
  EXPECT_EQ(output_of(command).text, "found/of/a/test!");
}

TEST(Process, StopsWhoSaysTooMuch) {
  const CommandOutput output = output_of(shell("yes"), 1 << 20);
  EXPECT_TRUE(output.end.stopped);
  EXPECT_FALSE(output.end.ended_well());
  EXPECT_LE(output.text.size(), std::size_t{1} << 20);
}

TEST(Process, WhatTheReceiverThrowsEndsTheProgram) {
  EXPECT_THROW(run_command(shell("yes"),
                           [](std::span<const std::byte>) -> bool {
                             throw std::runtime_error("enough");
                           }),
               std::runtime_error);
}

}  // namespace process_test
}  // namespace polyattn::base
