// `polyattn theory`: what theory says about the norms of attention, held
// against measurements.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/command.h"
#include "theory/calibrate.h"
#include "theory/matched.h"
#include "theory/report_trained.h"
#include "theory/study.h"

namespace polyattn::cli {

class TheoryCommand : public Command {
 public:
  // Adds the subcommand; the parent must outlive this. Without a reader there
  // is no --run.
  TheoryCommand(CLI::App& parent, const theory::RunReader* reader,
                theory::Theory theory = {});

  // kExitFailure if a theorem does not hold.
  int run() override;

 private:
  void add_run_options(CLI::App& app);
  void add_calibrate();
  int study();
  // In theory_calibrate.cc, with add_calibrate.
  int calibrate();
  void check_calibrate() const;
  // Throws std::runtime_error if there is none.
  const theory::RunReader& reader() const;

  const theory::RunReader* reader_;
  theory::Theory theory_;
  CLI::App* calibrate_app_ = nullptr;
  std::string degrees_ = "1..4";
  std::string lengths_ = "16..4096";
  std::string plot_;
  theory::StudyOptions options_;
  theory::CalibrateOptions calibrate_options_;
  theory::MatchOptions match_options_;
  std::vector<std::string> activations_;
  std::vector<std::int64_t> tokens_;
  theory::TheoryRunOptions run_options_;
  int threads_ = 0;
  bool json_ = false;
};

}  // namespace polyattn::cli
