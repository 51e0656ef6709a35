#include "cli/cli.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "base/output.h"
#include "base/program.h"
#include "cli/dashboard.h"
#include "cli/data.h"
#include "cli/plan.h"
#include "cli/program.h"
#include "cli/report.h"
#include "cli/sibling.h"
#include "cli/theory.h"

namespace polyattn::cli {
namespace {

Commands add_commands(CLI::App& app) {
  // What is in the programs beside this one, for the list in --help.
  app.add_subcommand("compare", kAboutCompare);
  app.add_subcommand("experiment", kAboutExperiment);
  app.add_subcommand("train", kAboutTrain);
  app.add_subcommand("eval", kAboutEval);
  app.add_subcommand("generate", kAboutGenerate);
  Commands commands;
  commands.push_back(std::make_unique<ReportCommand>(app));
  commands.push_back(std::make_unique<DashboardCommand>(app));
  commands.push_back(std::make_unique<DataCommand>(app));
  commands.push_back(std::make_unique<TheoryCommand>(app, nullptr));
  commands.push_back(std::make_unique<PlanCommand>(app));
  app.add_subcommand("bench", kAboutBench);
  return commands;
}

int dispatch(int argc, const char* const* argv,
             Commands (*add)(CLI::App& parent)) {
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
  const Commands commands = add(app);
  if (const auto code = parse_arguments(app, {argv + 1, argv + argc}))
    return *code;
  if (version) {
    base::print_text(version_line("polyattn"));
    return base::kExitDone;
  }
  const auto chosen =
      std::find_if(commands.begin(), commands.end(),
                   [](const auto& command) { return command->chosen(); });
  if (chosen != commands.end()) return (*chosen)->run();
  fmt::print(stderr, "{}", app.help());
  return base::kExitUsage;
}

}  // namespace

int run(int argc, const char* const* argv) {
  return run_program("polyattn", [&] {
    const std::string sibling = sibling_for(argc, argv);
    if (!sibling.empty()) become_sibling(sibling, argv);
    return dispatch(argc, argv, add_commands);
  });
}

int run_with(int argc, const char* const* argv,
             Commands (*add)(CLI::App& parent)) {
  return run_program("polyattn", [&] {
    use_kept_costs();
    return dispatch(argc, argv, add);
  });
}

}  // namespace polyattn::cli
