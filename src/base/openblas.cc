#include "base/openblas.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>

namespace polyattn::base {
namespace {

constexpr const char* kVariable = "OPENBLAS_CORETYPE";

// What a function of OpenBLAS says; empty if no library has it.
std::string answer_of(const char* function) {
  using Text = char* (*)();
  const auto ask = reinterpret_cast<Text>(::dlsym(RTLD_DEFAULT, function));
  return ask == nullptr ? "" : ask();
}

}  // namespace

std::string openblas_name() {
  // "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ..."
  const std::string config = answer_of("openblas_get_config");
  if (config.empty()) return "";
  const std::size_t version = config.find(' ');
  return config.substr(0, config.find(' ', version + 1)) + ", " +
         answer_of("openblas_get_corename");
}

std::string better_openblas_core(const std::string& name,
                                 const std::string& target) {
  if (!name.ends_with(", Prescott") || !target.starts_with("avx")) return "";
  return target == "avx2" ? "Haswell" : "SkylakeX";
}

void use_better_openblas_core(char* const* argv, const std::string& target) {
  if (std::getenv(kVariable) != nullptr) return;
  const std::string core = better_openblas_core(openblas_name(), target);
  if (core.empty() || ::setenv(kVariable, core.c_str(), 1) != 0) return;
  ::execv("/proc/self/exe", argv);  // if that fails, it is only slower
}

}  // namespace polyattn::base
