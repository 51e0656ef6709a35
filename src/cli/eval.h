// polyattn eval: the whole test set, or what the run held out, with its
// weights; of a language model also at other lengths.
#pragma once

#include <string>

#include "cli/command.h"
#include "train/evaluate_run.h"

namespace polyattn::cli {

class EvalCommand : public Command {
 public:
  explicit EvalCommand(CLI::App& parent);

  int run() override;

 private:
  train::EvaluateOptions options() const;
  int run_at_lengths() const;

  std::string folder_;
  std::string lengths_;
  std::string data_;
  std::string split_ = "test";
  int threads_ = 0;
  bool best_ = false;
  bool json_ = false;
};

}  // namespace polyattn::cli
