// polyattn generate: text from a language model.
#pragma once

#include "cli/command.h"
#include "train/generate.h"

namespace polyattn::cli {

class GenerateCommand : public Command {
 public:
  explicit GenerateCommand(CLI::App& parent);

  int run() override;

 private:
  train::GenerateResult write() const;

  train::GenerateOptions options_;
  std::string mode_ = "auto";
  bool json_ = false;
};

}  // namespace polyattn::cli
