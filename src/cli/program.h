// How a program of this project runs: errors become one line and an exit code.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace polyattn::cli {

// The instruction set in use. Throws base::UsageError, with the list of those
// that are supported, if POLYATTN_TARGET names another.
std::string checked_target();

// The library knows nothing of the file that `bench calibrate` leaves: programs
// that compute read it at their start. Throws as checked_target().
void use_kept_costs();

// "polyattn 0.1.0 (avx2; supported: ...; hardware threads: 2)", and a line end.
std::string version_line(const std::string& program);

// Parses the command line. Integers that begin with 0 are refused: CLI11 2.1
// would take 010 for 8. An exit code if there is nothing left to do, after
// --help or an error, which is printed.
std::optional<int> parse_arguments(CLI::App& app,
                                   std::vector<std::string> arguments);

// The exit code of `work`, which gives one of its own; or, if it throws, that
// of the error, which is printed as "PROGRAM: what".
int run_program(const std::string& program, const std::function<int()>& work);

}  // namespace polyattn::cli
