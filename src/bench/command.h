// `polyattn bench`: how fast attention is on this machine.
#pragma once

#include <string>
#include <vector>

namespace polyattn::bench {

// What follows `bench` on the command line, with core filled in where no
// benchmark is named. Throws UsageError, with what to type, for the flags that
// the names once were, such as --torch.
std::vector<std::string> with_name(std::vector<std::string> arguments);

// Measures and prints what they ask for, and gives the exit code. Throws
// UsageError, FormulaError or another std::exception.
int run_bench(const std::vector<std::string>& arguments);

}  // namespace polyattn::bench
