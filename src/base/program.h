// What the programs of this project have in common: exit codes, the error of a
// wrong command line, and what they say of themselves.
#pragma once

#include <stdexcept>
#include <string>

namespace polyattn::base {

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

// Cores that the process may use, at least 1.
int hardware_threads();

}  // namespace polyattn::base
