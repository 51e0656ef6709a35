// The polyattn command: options, subcommands, exit codes.
#pragma once

#include <stdexcept>
#include <string>

namespace polyattn::cli {

inline constexpr int kExitDone = 0;     // it did what was asked
inline constexpr int kExitFailure = 1;  // it could not
inline constexpr int kExitUsage = 2;    // it was asked wrongly

// What was asked makes no sense. Ends the program with kExitUsage.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// "0.1.0"
std::string version_number();

// The instruction set in use. Throws UsageError, with the list of those that
// are supported, if POLYATTN_TARGET names another.
std::string checked_target();

// Cores that the process may use, at least 1.
int hardware_threads();

int run(int argc, const char* const* argv);

}  // namespace polyattn::cli
