// `polyattn theory`: what theory says about the norms of attention, held
// against measurements.
#pragma once

#include <string>

#include "cli/command.h"
#include "cli/theory_run.h"
#include "theory/calibrate.h"
#include "theory/study.h"

namespace polyattn::cli {

class TheoryCommand : public Command {
 public:
  // Adds the subcommand; the parent must outlive this.
  explicit TheoryCommand(CLI::App& parent, theory::Theory theory = {});
  TheoryCommand(const TheoryCommand&) = delete;
  TheoryCommand& operator=(const TheoryCommand&) = delete;

  bool chosen() const override { return app_->parsed(); }

  // kExitFailure if a theorem does not hold.
  int run() override;

 private:
  void add_run_options(CLI::App& app);
  void add_calibrate();
  int study();
  int calibrate();

  CLI::App* app_;
  theory::Theory theory_;
  CLI::App* calibrate_app_ = nullptr;
  std::string degrees_ = "1..4";
  std::string lengths_ = "16..4096";
  std::string plot_;
  theory::StudyOptions options_;
  theory::CalibrateOptions calibrate_options_;
  TheoryRunOptions run_options_;
  int threads_ = 0;
  bool json_ = false;
};

}  // namespace polyattn::cli
