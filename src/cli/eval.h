// polyattn eval: the whole test set, with the weights of a run.
#pragma once

#include <string>

#include "cli/command.h"

namespace polyattn::cli {

class EvalCommand : public Command {
 public:
  explicit EvalCommand(CLI::App& parent);

  bool chosen() const override { return app_->parsed(); }
  int run() override;

 private:
  CLI::App* app_;
  std::string folder_;
  std::string data_;
  int threads_ = 0;
  bool best_ = false;
  bool json_ = false;
};

}  // namespace polyattn::cli
