// polyattn experiment: the comparisons that test a claim, as experiments/ has
// them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "train/compare_plan.h"
#include "train/run/experiment.h"

namespace polyattn::cli {

class ExperimentCommand : public Command {
 public:
  explicit ExperimentCommand(CLI::App& parent);

  int run() override;

 private:
  void add_list();
  void add_run();
  CLI::App* add(const char* name, const char* what);
  int list() const;
  int run_one() const;
  std::vector<std::filesystem::path> folders() const;
  run::Experiment experiment() const;
  std::filesystem::path output_of(const std::string& name) const;
  std::vector<train::ComparePlan> plans_of(
      const run::Experiment& experiment) const;
  std::vector<bool> chosen(const run::Experiment& experiment) const;
  // Nothing if it was interrupted before the first run.
  std::optional<base::Json> compare(train::ComparePlan plan) const;

  std::string name_;
  std::string experiments_ = "experiments";
  std::string only_;
  std::string out_;
  bool quick_ = false;
  int jobs_ = 0;
  int threads_ = 0;
  bool json_ = false;
};

}  // namespace polyattn::cli
