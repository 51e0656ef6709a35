// `polyattn plan`: dense or linear, and why.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/plan_report.h"

namespace polyattn::cli {

struct PlanOptions {
  std::int64_t n = 0;
  std::optional<std::int64_t> m;  // as many as queries
  std::int64_t d = 64;
  std::optional<std::int64_t> e;  // as wide as keys
  std::int64_t batch = 1;
  std::int64_t heads = 1;
  std::optional<std::int64_t> kv_heads;  // as many as heads
  std::string activation;
  std::optional<int> degree;  // stands for x^P/sqrt(N)
  std::string causal = "none";
  std::vector<std::int64_t> window;  // keys before and behind; empty: all
  bool forward = false;              // neither: both
  bool backward = false;
  std::optional<std::string> json;  // a path, or "-" for standard output
};

// Throws UsageError or FormulaError.
PlanQuestion plan_question(const PlanOptions& options);

class PlanCommand : public Command {
 public:
  // Adds the subcommand; the parent must outlive this.
  explicit PlanCommand(CLI::App& parent);

  int run() override;

 private:
  void add_shape_options();

  PlanOptions options_;
};

}  // namespace polyattn::cli
