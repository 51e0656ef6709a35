#include "cli/plan.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/output.h"
#include "base/program.h"
#include "base/text_file.h"
#include "cli/program.h"

namespace polyattn::cli {
namespace {

CLI::Validator plan_size() {
  return CLI::Range(std::int64_t{1}, std::int64_t{1} << 30).description("");
}

Activation plan_activation(const PlanOptions& o) {
  if (o.degree && !o.activation.empty()) {
    throw base::UsageError("--degree and --activation: give one of them");
  }
  if (o.degree) {
    return Activation::parse(*o.degree == 1
                                 ? std::string("x/sqrt(N)")
                                 : fmt::format("x^{}/sqrt(N)", *o.degree));
  }
  if (o.activation.empty()) {
    throw base::UsageError(
        "say what to plan: --degree P for x^P/sqrt(N), or --activation "
        "FORMULA");
  }
  return Activation::parse(o.activation);
}

Causal plan_causal(const std::string& name) {
  for (const Causal causal : {Causal::kNone, Causal::kFirst, Causal::kLast}) {
    if (name == name_of(causal)) return causal;
  }
  throw base::UsageError(
      fmt::format("--causal {}: it is one of none, first, last", name));
}

// Keys before a row's own position, and behind it: as many if not said.
Window plan_window(const std::vector<std::int64_t>& keys) {
  if (keys.empty()) return {};
  return {keys.front(), keys.back()};
}

}  // namespace

PlanQuestion plan_question(const PlanOptions& o) {
  const std::int64_t kv_heads = o.kv_heads.value_or(o.heads);
  if (o.heads % kv_heads != 0) {
    throw base::UsageError(fmt::format(
        "--heads {} is not a multiple of --kv-heads {}", o.heads, kv_heads));
  }
  PlanQuestion question;
  question.shape = {.activation = plan_activation(o),
                    .b = o.batch,
                    .h = o.heads,
                    .g = kv_heads,
                    .n = o.n,
                    .m = o.m.value_or(o.n),
                    .d = o.d,
                    .e = o.e.value_or(o.d),
                    .causal = plan_causal(o.causal),
                    .window = plan_window(o.window)};
  question.keys_follow = !o.m;
  if (o.forward && !o.backward) question.directions = {Direction::kForward};
  if (o.backward && !o.forward) question.directions = {Direction::kBackward};
  return question;
}

PlanCommand::PlanCommand(CLI::App& parent)
    : Command(parent.add_subcommand(
          "plan", "Dense or linear: what attention does with a shape")) {
  app_->footer(
      "Examples:\n"
      "  polyattn plan --N 16384 --D 64 --degree 2\n"
      "  polyattn plan --N 4096 --D 16 --activation '1 + x + x^2/2' --causal\n"
      "  polyattn plan --N 16384 --activation softmax --causal --window 255\n"
      "  polyattn plan --N 1024 --M 65536 --degree 1 --forward --json");
  add_shape_options();
  app_->add_flag("--forward", options_.forward, "Forward only");
  app_->add_flag("--backward", options_.backward, "Backward only");
  app_->add_option("--json", options_.json,
                   "Write JSON to a file, or instead of the text")
      ->expected(0, 1)
      ->type_name("[FILE]");
}

void PlanCommand::add_shape_options() {
  PlanOptions& o = options_;
  app_->add_option("-N,--N,--n", o.n, "Queries")
      ->required()
      ->check(plan_size());
  app_->add_option("-M,--M,--m", o.m, "Keys; as many as queries")
      ->check(plan_size());
  app_->add_option("-D,--D,--d", o.d, "Width of q and k; default 64")
      ->check(plan_size());
  app_->add_option("-E,--E,--e", o.e, "Width of v; as D")->check(plan_size());
  app_->add_option("--batch", o.batch, "B")->check(plan_size());
  app_->add_option("--heads", o.heads, "H, query heads")->check(plan_size());
  app_->add_option("--kv-heads", o.kv_heads, "G, key heads: divides H")
      ->check(plan_size());
  app_->add_option("--activation", o.activation,
                   "Formula such as x^3/sqrt(N) or 1 + x + x^2/2");
  app_->add_option("--degree", o.degree, "P: short for x^P/sqrt(N)")
      ->check(CLI::Range(1, kMaxDegree).description(""));
  app_->add_option("--causal", o.causal,
                   "Aligned at the first or the last key (default)")
      ->expected(0, 1)
      ->type_name("[first|last]")
      ->check(CLI::IsMember({"none", "first", "last", ""}).description(""));
  app_->add_option(
          "--window", o.window,
          "Keys that a row sees before its own position, and behind it "
          "(as many; none if causal); -1: no limit")
      ->expected(1, 2)
      ->type_name("LEFT [RIGHT]")
      ->check(
          CLI::Range(std::int64_t{-1}, std::int64_t{1} << 30).description(""));
}

int PlanCommand::run() {
  if (app_->count("--causal") > 0 && options_.causal.empty()) {
    options_.causal = "last";
  }
  if (app_->count("--json") > 0 && options_.json.value_or("").empty()) {
    options_.json = "-";
  }
  use_kept_costs();
  if (options_.json && *options_.json != "-")
    base::check_writable(*options_.json);
  const PlanQuestion question = plan_question(options_);
  const auto answers = answer_plan(question);
  const std::string json = base::json_text(plan_json(question, answers));
  if (options_.json == "-") {
    base::print_text(json);
    return base::kExitDone;
  }
  base::print_text(plan_text(question, answers));
  if (options_.json) base::write_text_file(*options_.json, json);
  return base::kExitDone;
}

}  // namespace polyattn::cli
