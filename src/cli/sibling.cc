#include "cli/sibling.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string_view>

#include "base/openblas.h"
#include "polyattn/target.h"

namespace polyattn::cli {
namespace {

constexpr std::array<std::string_view, 5> kTraining = {
    "compare", "eval", "experiment", "generate", "train"};

// `theory --run RUN` reads the model of the run.
bool reads_a_run(int argc, const char* const* argv) {
  return std::any_of(argv + 2, argv + argc, [](std::string_view argument) {
    return argument == "--run" || argument.starts_with("--run=");
  });
}

}  // namespace

std::string sibling_for(int argc, const char* const* argv) {
  if (argc < 2) return "";
  const std::string_view command = argv[1];
  if (command == "bench") return "polyattn-bench";
  const bool training =
      std::find(kTraining.begin(), kTraining.end(), command) != kTraining.end();
  if (training || (command == "theory" && reads_a_run(argc, argv))) {
    return "polyattn-train";
  }
  return "";
}

void become_sibling(const std::string& name, const char* const* argv) {
  const std::filesystem::path self =
      std::filesystem::read_symlink("/proc/self/exe");
  const std::filesystem::path program = self.parent_path() / name;
  base::tell_openblas_its_core(supported_targets().front());
  ::execv(program.c_str(), const_cast<char* const*>(argv));
  const int error = errno;
  if (error != ENOENT) {
    throw std::runtime_error(fmt::format("cannot run {}: {}", program.string(),
                                         std::strerror(error)));
  }
#ifndef POLYATTN_HAVE_TORCH
  if (name == "polyattn-train") {
    throw std::runtime_error(
        fmt::format("{} needs torch, which is not in this build: install "
                    "libtorch-dev, configure with -DPOLYATTN_TORCH=ON and "
                    "build again",
                    argv[1]));
  }
#endif
  throw std::runtime_error(fmt::format(
      "{} is done by {}, which is not in {}: build it with cmake --build {} "
      "--target {}",
      argv[1], name, self.parent_path().string(), self.parent_path().string(),
      name));
}

}  // namespace polyattn::cli
