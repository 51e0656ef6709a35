#include "cli/cli.h"

#include <fmt/format.h>
#include <malloc.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <limits>
#include <memory>
#include <thread>

#include "cli/bench.h"
#include "cli/command.h"
#include "cli/dashboard.h"
#include "cli/data.h"
#include "cli/files.h"
#include "cli/plan.h"
#include "cli/report.h"
#include "cli/theory.h"
#include "polyattn/activation.h"
#include "polyattn/plan.h"
#include "polyattn/target.h"
#include "polyattn/version.h"
#include "run/config.h"

namespace polyattn::cli {
namespace {

std::string version_line() {
  return fmt::format("polyattn {} ({}; supported: {}; hardware threads: {})\n",
                     version_number(), checked_target(),
                     fmt::join(supported_targets(), ", "), hardware_threads());
}

// A step of training allocates and frees the same blocks of some megabytes
// again and again. By default the C library hands them back to the kernel each
// time, and every page is faulted in anew.
void keep_freed_memory() {
  constexpr int kLargestThreshold = 32 << 20;  // more is refused
  ::mallopt(M_MMAP_THRESHOLD, kLargestThreshold);
  ::mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  ::mallopt(M_TOP_PAD, 64 << 20);
}

// The library knows nothing of the file that `bench --calibrate` leaves.
void use_kept_costs() {
  checked_target();
  if (const auto costs = read_path_costs_file()) set_path_costs(costs);
}

int dispatch(int argc, const char* const* argv) {
  CLI::App app{"polyattn: attention with softmax, polynomials and others.",
               "polyattn"};
  app.footer(
      "Examples:\n"
      "  polyattn compare --budget 5m\n"
      "  polyattn train configs/sotu.toml\n"
      "  polyattn dashboard runs\n"
      "  polyattn theory\n"
      "  polyattn plan --N 16384 --D 64 --degree 2\n"
      "  polyattn bench --quick\n\n"
      "POLYATTN_TARGET=NAME forces an instruction set; --version lists them.");
  bool version = false;
  app.add_flag("--version", version, "Version and instruction sets");
  app.require_subcommand(0, 1);
  auto commands = training_commands(app);
  commands.push_back(std::make_unique<ReportCommand>(app));
  commands.push_back(std::make_unique<DashboardCommand>(app));
  commands.push_back(std::make_unique<DataCommand>(app));
  commands.push_back(std::make_unique<TheoryCommand>(app));
  commands.push_back(std::make_unique<PlanCommand>(app));
  commands.push_back(std::make_unique<BenchCommand>(app));

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitDone : kExitUsage;
  }
  if (version) {
    print_text(version_line());
    return kExitDone;
  }
  const auto chosen =
      std::find_if(commands.begin(), commands.end(),
                   [](const auto& command) { return command->chosen(); });
  if (chosen != commands.end()) {
    use_kept_costs();
    return (*chosen)->run();
  }
  fmt::print(stderr, "{}", app.help());
  return kExitUsage;
}

}  // namespace

std::string version_number() {
  return fmt::format("{}.{}.{}", kVersionMajor, kVersionMinor, kVersionPatch);
}

std::string checked_target() {
  try {
    return target_name();
  } catch (const std::invalid_argument& error) {
    std::string message = error.what();
    const std::string supported =
        fmt::format("{}", fmt::join(supported_targets(), ", "));
    if (message.find(supported) == std::string::npos) {
      message += fmt::format(" (supported: {})", supported);
    }
    throw UsageError(message);
  }
}

int hardware_threads() {
  const unsigned count = std::thread::hardware_concurrency();
  return count == 0 ? 1 : static_cast<int>(count);
}

int run(int argc, const char* const* argv) {
  keep_freed_memory();
  try {
    return dispatch(argc, argv);
  } catch (const FormulaError& error) {
    fmt::print(stderr, "polyattn: bad activation: {}\n", error.what());
    return kExitUsage;
  } catch (const run::ConfigError& error) {
    fmt::print(stderr, "polyattn: {}\n", error.what());
    return kExitUsage;
  } catch (const UsageError& error) {
    fmt::print(stderr, "polyattn: {}\n", error.what());
    return kExitUsage;
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "polyattn: out of memory; try smaller shapes\n");
  } catch (const std::exception& error) {
    fmt::print(stderr, "polyattn: {}\n", error.what());
  }
  return kExitFailure;
}

}  // namespace polyattn::cli
