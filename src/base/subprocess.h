// Runs this program again, in another environment.
#pragma once

#include <string>
#include <vector>

namespace polyattn::base {

struct Variable {
  std::string name, value;
};

// What the program, called with these arguments and with the variable set,
// writes to standard output. Throws std::runtime_error unless it ends well.
std::string output_of_self(const std::vector<std::string>& arguments,
                           const Variable& variable);

}  // namespace polyattn::base
