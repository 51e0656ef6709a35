#include "cli/program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <malloc.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <limits>
#include <new>
#include <sstream>
#include <utility>

#include "base/output.h"
#include "base/program.h"
#include "polyattn/activation.h"
#include "polyattn/plan.h"
#include "polyattn/target.h"
#include "train/run/config.h"

namespace polyattn::cli {
namespace {

// A step of training allocates and frees the same blocks of some megabytes
// again and again. By default the C library hands them back to the kernel each
// time, and every page is faulted in again.
void keep_freed_memory() {
  constexpr int kLargestThreshold = 32 << 20;  // more is refused
  ::mallopt(M_MMAP_THRESHOLD, kLargestThreshold);
  ::mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  ::mallopt(M_TOP_PAD, 64 << 20);
}

std::string refusal_of_octal(const std::string& text) {
  const std::size_t sign = text.find_first_of("+-") == 0 ? 1 : 0;
  const bool octal = text.size() > sign + 1 && text[sign] == '0' &&
                     text[sign + 1] >= '0' && text[sign + 1] <= '9';
  return octal
             ? fmt::format("{} begins with 0: write integers without it", text)
             : "";
}

void refuse_octal(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    const std::string type = option->get_type_name();
    if (type.starts_with("INT") || type.starts_with("UINT")) {
      option->check(CLI::Validator(refusal_of_octal, ""));
    }
  }
  const auto every = [](const CLI::App*) { return true; };
  for (CLI::App* command : app.get_subcommands(every)) refuse_octal(*command);
}

// libtorch's errors end with the frames of the stack, which tell users nothing.
std::string without_frames(const std::string& message) {
  return message.substr(0, message.find("\nException raised from "));
}

}  // namespace

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
    throw base::UsageError(message);
  }
}

void use_kept_costs() {
  checked_target();
  if (const auto costs = read_path_costs_file()) set_path_costs(costs);
}

std::string version_line(const std::string& program) {
  return fmt::format("{} {} ({}; supported: {}; hardware threads: {})\n",
                     program, base::version_number(), checked_target(),
                     fmt::join(supported_targets(), ", "),
                     base::hardware_threads());
}

std::optional<int> parse_arguments(CLI::App& app,
                                   std::vector<std::string> arguments) {
  // From 2.5 on CLI11 fills the lines of texts, those of examples too.
#if CLI11_VERSION_MAJOR > 2 || \
    (CLI11_VERSION_MAJOR == 2 && CLI11_VERSION_MINOR >= 5)
  app.get_formatter()->enable_description_formatting(false);
  app.get_formatter()->enable_footer_formatting(false);
#endif
  refuse_octal(app);
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 takes them
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    std::ostringstream out;
    const int code = app.exit(error, out);
    // Help that could not be written is no help.
    base::print_text(out.str());
    return code == 0 ? base::kExitDone : base::kExitUsage;
  }
  return std::nullopt;
}

int run_program(const std::string& program, const std::function<int()>& work) {
  keep_freed_memory();
  const auto refuse = [&](const std::string& message, int code) {
    fmt::print(stderr, "{}: {}\n", program, message);
    return code;
  };
  try {
    return work();
  } catch (const FormulaError& error) {
    return refuse(fmt::format("bad activation: {}", error.what()),
                  base::kExitUsage);
  } catch (const run::ConfigError& error) {
    return refuse(error.what(), base::kExitUsage);
  } catch (const base::UsageError& error) {
    return refuse(error.what(), base::kExitUsage);
  } catch (const std::bad_alloc&) {
    return refuse("out of memory; try smaller shapes", base::kExitFailure);
  } catch (const std::exception& error) {
    return refuse(without_frames(error.what()), base::kExitFailure);
  }
}

}  // namespace polyattn::cli
