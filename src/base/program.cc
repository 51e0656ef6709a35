#include "base/program.h"

#include <fmt/format.h>

#include <thread>

#include "polyattn/version.h"

namespace polyattn::base {

std::string version_number() {
  return fmt::format("{}.{}.{}", kVersionMajor, kVersionMinor, kVersionPatch);
}

int hardware_threads() {
  const unsigned count = std::thread::hardware_concurrency();
  return count == 0 ? 1 : static_cast<int>(count);
}

}  // namespace polyattn::base
