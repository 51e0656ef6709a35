// Any text either is an experiment or throws ConfigError, never anything else;
// and what is accepted can be run, whole and quick.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "train/run/experiment.h"

namespace {

using polyattn::run::ConfigError;
using polyattn::run::ExperimentSize;

void require(bool condition, const char* message, std::string_view detail) {
  if (condition) return;
  std::fprintf(stderr, "%s\n%.*s\n", message, static_cast<int>(detail.size()),
               detail.data());
  std::abort();
}

void check_accepted(const polyattn::run::Experiment& experiment) {
  for (const auto& comparison : experiment.comparisons) {
    require(!comparison.arms.empty(), "nothing to compare", comparison.name);
    for (const auto& arm : comparison.arms) {
      try {
        polyattn::run::check_config(
            polyattn::run::arm_config(comparison.base, arm));
      } catch (const ConfigError& error) {
        require(false, "accepted, but it cannot be run", error.what());
      }
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  for (const auto part : {ExperimentSize::kWhole, ExperimentSize::kQuick}) {
    try {
      check_accepted(polyattn::run::parse_experiment(input, "fuzz", part));
    } catch (const ConfigError& error) {
      const std::string_view what = error.what();
      require(what.starts_with("[experiment] "), "message without its mark",
              what);
      require(what.size() < 12000, "a message of any length", what);
    }
  }
  return 0;
}
