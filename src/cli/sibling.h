// Commands that run in a program of their own, which lies beside this one:
// those that need libtorch, so that all others start without it, and the
// benchmarks, which not everybody builds.
#pragma once

#include <string>

namespace polyattn::cli {

// The program that the command line is for: "polyattn-train",
// "polyattn-bench", or empty for this one.
std::string sibling_for(int argc, const char* const* argv);

// Becomes that program, with the same arguments. Throws std::runtime_error,
// with what to do, if there is none.
[[noreturn]] void become_sibling(const std::string& name,
                                 const char* const* argv);

}  // namespace polyattn::cli
