// Which instruction set the kernels use. The best one that the machine has is
// chosen at the first call; the environment variable POLYATTN_TARGET (avx3,
// avx2, sse4, ... as named by supported_targets()) forces another.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace polyattn {

// The target in use. Throws std::invalid_argument if POLYATTN_TARGET names
// none that this machine and build have.
std::string target_name();

// Targets compiled in that this machine can run, best first.
std::vector<std::string> supported_targets();

// Uses this target from now on, in the whole process; "" goes back to the
// default. Not to be called while a kernel runs.
void force_target(std::string_view name);

}  // namespace polyattn
