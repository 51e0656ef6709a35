#include "base/openblas.h"

#include <dlfcn.h>

#include <cstdlib>

namespace polyattn::base {
namespace {

constexpr const char* kVariable = "OPENBLAS_CORETYPE";

// What a function of OpenBLAS says; empty if the library does not have it.
std::string answer_of(void* library, const char* function) {
  using Text = char* (*)();
  const auto ask = reinterpret_cast<Text>(::dlsym(library, function));
  return ask == nullptr ? "" : ask();
}

std::string name_of(void* library) {
  // "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ..."
  const std::string config = answer_of(library, "openblas_get_config");
  if (config.empty()) return "";
  const std::size_t version = config.find(' ');
  return config.substr(0, config.find(' ', version + 1)) + ", " +
         answer_of(library, "openblas_get_corename");
}

}  // namespace

std::string openblas_name() { return name_of(RTLD_DEFAULT); }

std::string better_openblas_core(const std::string& name,
                                 const std::string& target) {
  if (!name.ends_with(", Prescott") || !target.starts_with("avx")) return "";
  return target == "avx2" ? "Haswell" : "SkylakeX";
}

void tell_openblas_its_core(const std::string& target) {
  if (std::getenv(kVariable) != nullptr) return;
  // The name under which libtorch asks for its BLAS. It takes ten milliseconds.
  void* const library = ::dlopen("libblas.so.3", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return;
  const std::string core = better_openblas_core(name_of(library), target);
  if (!core.empty()) ::setenv(kVariable, core.c_str(), 1);
}

}  // namespace polyattn::base
