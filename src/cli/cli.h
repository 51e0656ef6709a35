// The polyattn command: options, subcommands, exit codes.
#pragma once

#include "cli/command.h"

namespace polyattn::cli {

// The command that people call. What needs torch, and the benchmarks, it leaves
// to the programs beside it (cli/sibling.h).
int run(int argc, const char* const* argv);

// The same for polyattn-train, with the commands that `add` adds.
int run_with(int argc, const char* const* argv,
             Commands (*add)(CLI::App& parent));

}  // namespace polyattn::cli
