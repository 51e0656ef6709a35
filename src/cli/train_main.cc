// polyattn-train: the commands that need torch.
#include "cli/cli.h"
#include "cli/compare.h"
#include "cli/eval.h"
#include "cli/experiment.h"
#include "cli/generate.h"
#include "cli/theory.h"
#include "cli/theory_run.h"
#include "cli/train.h"

namespace polyattn::cli {
namespace {

Commands training_commands(CLI::App& parent) {
  Commands commands;
  commands.push_back(std::make_unique<CompareCommand>(parent));
  commands.push_back(std::make_unique<ExperimentCommand>(parent));
  commands.push_back(std::make_unique<TrainCommand>(parent));
  commands.push_back(std::make_unique<EvalCommand>(parent));
  commands.push_back(std::make_unique<GenerateCommand>(parent));
  commands.push_back(std::make_unique<TheoryCommand>(parent, &kRunReader));
  return commands;
}

}  // namespace
}  // namespace polyattn::cli

int main(int argc, char** argv) {
  return polyattn::cli::run_with(argc, argv, polyattn::cli::training_commands);
}
