// Runs another program, without a shell in between.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace polyattn::data {

struct Command {
  // The program, looked for in $PATH, and its arguments.
  std::vector<std::string> arguments;
  // Its standard error goes to this file, anew.
  std::filesystem::path log;
  // Where it runs; here, if empty.
  std::filesystem::path folder = {};
};

struct CommandEnd {
  bool found = true;     // there is such a program
  bool stopped = false;  // take() had enough
  std::string reason;    // empty if it ended well, else "exit code 1: ..."

  bool ended_well() const { return reason.empty(); }
};

// Hands over what the program writes to standard output, piece by piece, until
// it ends, or until take() returns false; then the program is ended. Throws
// DataError if it cannot be started, and what take() throws.
CommandEnd run_command(
    const Command& command,
    const std::function<bool(std::span<const std::byte>)>& take);

struct CommandOutput {
  CommandEnd end;
  std::string text;
};

// The same for a short output: up to max_bytes of it.
CommandOutput output_of(const Command& command, std::size_t max_bytes = 65536);

}  // namespace polyattn::data
