// `polyattn bench`: how fast attention is on this machine.
#pragma once

#include <string>

#include "bench/bench_options.h"
#include "cli/command.h"

namespace polyattn::bench {

class BenchCommand : public cli::Command {
 public:
  // Adds the subcommand; the parent must outlive this.
  explicit BenchCommand(CLI::App& parent);
  BenchCommand(const BenchCommand&) = delete;
  BenchCommand& operator=(const BenchCommand&) = delete;

  bool chosen() const override;

  // Measures and prints what the parsed options ask for. Throws UsageError,
  // FormulaError or another std::exception.
  int run() override;

 private:
  struct Report {
    std::string json, table;
  };

  Report run_core() const;
  Report run_torch() const;
  Report run_linear() const;
  int run_calibration() const;
  // Throws UsageError for options that do not go together.
  void check_modes() const;
  void print(const Report& report) const;
  void add_grid_options();
  void add_mode_options();
  void add_run_options();

  CLI::App* app_;
  BenchOptions options_;
};

}  // namespace polyattn::bench
