// The OpenBLAS that a program has loaded, if any: libtorch multiplies with it.
#pragma once

#include <string>

namespace polyattn::base {

// "OpenBLAS 0.3.21, SkylakeX", the last being the core whose kernels it took;
// empty without OpenBLAS.
std::string openblas_name();

// The core that OPENBLAS_CORETYPE should name, because this library runs far
// below what an instruction set (polyattn/target.h) can do: on a processor that
// it does not know, OpenBLAS takes kernels of 2004. Otherwise empty.
std::string better_openblas_core(const std::string& name,
                                 const std::string& target);

// Starts this program again with that core, unless OPENBLAS_CORETYPE is set:
// OpenBLAS reads it only when it is loaded. Returns if there is nothing to
// gain.
void use_better_openblas_core(char* const* argv, const std::string& target);

}  // namespace polyattn::base
