// The OpenBLAS that a program has loaded, if any: libtorch multiplies with it.
#pragma once

#include <string>

namespace polyattn::base {

// "OpenBLAS 0.3.21, SkylakeX", the last being the core whose kernels it took;
// empty if this program has loaded none.
std::string openblas_name();

// The core that OPENBLAS_CORETYPE should name, because this library runs far
// below what an instruction set (polyattn/target.h) can do: on a processor that
// it does not know, OpenBLAS takes kernels of 2004. Otherwise empty.
std::string better_openblas_core(const std::string& name,
                                 const std::string& target);

// Sets OPENBLAS_CORETYPE to that core for the program that this one is about to
// become, unless it is set: OpenBLAS reads it when it is loaded.
void tell_openblas_its_core(const std::string& target);

}  // namespace polyattn::base
