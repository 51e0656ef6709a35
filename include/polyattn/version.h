// The version of polyattn. CMake reads the three numbers from here.
#pragma once

#define POLYATTN_VERSION_MAJOR 0
#define POLYATTN_VERSION_MINOR 1
#define POLYATTN_VERSION_PATCH 0

namespace polyattn {

inline constexpr int kVersionMajor = POLYATTN_VERSION_MAJOR;
inline constexpr int kVersionMinor = POLYATTN_VERSION_MINOR;
inline constexpr int kVersionPatch = POLYATTN_VERSION_PATCH;

// Raised with every change of a kernel after which the same call gives other
// bits: other random numbers of dropout, another order of additions. A run of
// training that goes on with another number says so.
inline constexpr int kKernelBits = 3;

}  // namespace polyattn
