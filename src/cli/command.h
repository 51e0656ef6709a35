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
  // base::UsageError or another std::exception.
  virtual int run() = 0;
};

using Commands = std::vector<std::unique_ptr<Command>>;

}  // namespace polyattn::cli
