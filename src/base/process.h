// Other programs, run without a shell in between.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/file_descriptor.h"

namespace polyattn::base {

struct Variable {
  std::string name, value;
};

struct Command {
  // The program, looked for in $PATH, and its arguments.
  std::vector<std::string> arguments;
  // The file that is run, where the name is not to be looked for.
  std::filesystem::path program = {};
  // Its standard error replaces this file; empty: ours.
  std::filesystem::path log = {};
  // Where it runs; here, if empty.
  std::filesystem::path folder = {};
  // Set in its environment, which is ours otherwise.
  std::vector<Variable> variables = {};
};

struct CommandEnd {
  bool found = true;     // there is such a program
  bool stopped = false;  // take() had enough
  std::string reason;    // empty if it ended well, else "exit code 1: ..."

  bool ended_well() const { return reason.empty(); }
};

// Hands over what the program writes to standard output, piece by piece, until
// it ends, or until take() returns false; then the program is ended. It reads
// nothing. Throws std::runtime_error if it cannot be started, and what take()
// throws.
CommandEnd run_command(
    const Command& command,
    const std::function<bool(std::span<const std::byte>)>& take);

struct CommandOutput {
  CommandEnd end;
  std::string text;
};

// The same for a short output: up to max_bytes of it.
CommandOutput output_of(const Command& command, std::size_t max_bytes = 65536);

// What this program, called with these arguments and with the variable set,
// writes to standard output. Throws std::runtime_error unless it ends well.
std::string output_of_self(const std::vector<std::string>& arguments,
                           const Variable& variable);

// Both are closed in programs that are started. Throws std::system_error.
struct Pipe {
  Pipe();

  FileDescriptor out;  // what is written to `in` is read here
  FileDescriptor in;
};

// read() again if a signal interrupts it.
ssize_t read_some(int file, void* to, std::size_t size);

// Waits for the end of a child. Its exit code, or minus the signal.
int wait_for(pid_t child);

// "exit code 1", "signal 9"
std::string describe_end(int code);

}  // namespace polyattn::base
