// A subcommand of polyattn.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <vector>

namespace polyattn::cli {

class Command {
 public:
  virtual ~Command() = default;

  // Whether the parsed command line asks for it.
  virtual bool chosen() const = 0;

  // Does what the parsed options ask for, and gives the exit code. Throws
  // UsageError or another std::exception.
  virtual int run() = 0;
};

// train, compare, eval and generate. In a build without torch they only say
// that they are not there.
std::vector<std::unique_ptr<Command>> training_commands(CLI::App& parent);

}  // namespace polyattn::cli
