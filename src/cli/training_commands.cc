#include "cli/command.h"
#include "cli/compare.h"
#include "cli/eval.h"
#include "cli/generate.h"
#include "cli/train.h"

namespace polyattn::cli {

std::vector<std::unique_ptr<Command>> training_commands(CLI::App& parent) {
  std::vector<std::unique_ptr<Command>> commands;
  commands.push_back(std::make_unique<CompareCommand>(parent));
  commands.push_back(std::make_unique<TrainCommand>(parent));
  commands.push_back(std::make_unique<EvalCommand>(parent));
  commands.push_back(std::make_unique<GenerateCommand>(parent));
  return commands;
}

}  // namespace polyattn::cli
