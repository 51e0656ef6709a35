#include "bench/bench.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>

#include "base/output.h"
#include "base/program.h"
#include "base/progress.h"
#include "base/text_file.h"
#include "bench/bench_json.h"
#include "bench/bench_table.h"
#include "bench/bench_torch.h"
#include "bench/calibrate.h"
#include "bench/linear_bench.h"
#include "cli/program.h"

namespace polyattn::bench {
namespace {

constexpr const char* kGrid = "Cases of your own (any of these)";
constexpr const char* kInstead = "Instead of the table of goals (one of these)";
constexpr const char* kMeasuring = "Measuring";

// Checks a range and keeps it out of the help text.
template <typename T>
CLI::Validator between(T low, T high) {
  return CLI::Range(low, high).description("");
}

CLI::Validator size_range() {
  return between(std::int64_t{1}, std::int64_t{1} << 30);
}

double machine_memory() {
  return static_cast<double>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<double>(::sysconf(_SC_PAGESIZE));
}

std::string machine_line() {
  return fmt::format("polyattn {} bench, target {}, {} hardware threads",
                     base::version_number(), cli::checked_target(),
                     base::hardware_threads());
}

bool wants_colours() {
  return ::isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
}

std::vector<Measurement> measure_all(const std::vector<Figure>& figures,
                                     const BenchOptions& options) {
  const RunOptions run = run_options(options);
  double total = 0;
  for (const Figure& figure : figures) total += effort_of(figure, run);
  base::Progress progress(base::progress_style(options.json == "-"),
                          static_cast<int>(figures.size()), total);
  Bench bench(run);
  std::vector<Measurement> measurements;
  for (const Figure& figure : figures) {
    progress.step(
        fmt::format("{}, threads: {}", figure.name, figure.subject.threads),
        effort_of(figure, run));
    measurements.push_back(bench.measure(figure));
  }
  return measurements;
}

}  // namespace

BenchCommand::BenchCommand(CLI::App& parent)
    : app_(parent.add_subcommand(
          "bench", "Measure attention against OpenBLAS or libtorch")) {
  app_->footer(
      "Without options: the table of goals, some minutes. Ratios are medians "
      "of rounds\nin which sgemm, the case and its rival take turns.\n\n"
      "Examples:\n"
      "  polyattn bench --quick\n"
      "  polyattn bench --activation softmax --activation 'x^4/sum' "
      "--length 512,2048 --causal first\n"
      "  polyattn bench --op forward --dtype f32,bf16 --width 128 --json "
      "out.json\n"
      "  polyattn bench --torch --threads 2\n"
      "  polyattn bench --train\n"
      "  polyattn bench --linear\n"
      "  polyattn bench --calibrate");
  add_grid_options();
  add_mode_options();
  add_run_options();
}

bool BenchCommand::chosen() const { return app_->parsed(); }

void BenchCommand::add_grid_options() {
  BenchOptions& o = options_;
  const auto list = [](CLI::Option* option) {
    option->delimiter(',')->allow_extra_args(false);
    return option;
  };
  list(app_->add_option("--op", o.ops, "forward, backward or both"))
      ->check(CLI::IsMember({"forward", "backward"}));
  app_->add_option("--activation", o.activations,
                   "Formula such as softmax or x^3/sqrt(N); may be repeated")
      ->allow_extra_args(false);
  list(app_->add_option("--dtype", o.dtypes, "Storage: f32, bf16, f16, f64"))
      ->check(CLI::IsMember({"f32", "bf16", "f16", "f64"}));
  app_->add_option("--batch", o.batch, "B")->check(size_range());
  app_->add_option("--heads", o.heads, "H, query heads")->check(size_range());
  app_->add_option("--kv-heads", o.kv_heads, "G, key heads: divides H")
      ->check(size_range());
  list(app_->add_option("--length", o.lengths, "N, queries"))
      ->check(size_range());
  app_->add_option("--keys", o.keys, "M, keys; as many as queries")
      ->check(size_range());
  list(app_->add_option("--width", o.widths, "D, width of q and k"))
      ->check(size_range());
  app_->add_option("--value-width", o.value_width, "E, width of v; as D")
      ->check(size_range());
  app_->add_option("--causal", o.causal,
                   "none, or aligned at the first or the last key")
      ->check(CLI::IsMember({"none", "first", "last"}));
  app_->add_flag("--stats", o.stats, "Also compute the statistics (forward)");
  app_->add_option("--path", o.path,
                   "dense (default), linear, or auto: what the planner takes")
      ->check(CLI::IsMember({"dense", "linear", "auto"}));
  for (CLI::Option* option : app_->get_options()) {
    if (option != app_->get_help_ptr()) option->group(kGrid);
  }
}

void BenchCommand::add_mode_options() {
  BenchOptions& o = options_;
  const auto add = [&](CLI::Option* option) { option->group(kInstead); };
  add(app_->add_flag("--torch", o.torch, "The torch ops against libtorch"));
  add(app_->add_flag("--train", o.train, "Steps of training against libtorch"));
  add(app_->add_flag("--linear", o.linear,
                     "Attention in linear time, decoding and the planner; "
                     "some minutes"));
  add(app_->add_flag("--calibrate", o.calibrate,
                     "What the planner needs to know of this machine, and "
                     "keep it"));
}

void BenchCommand::add_run_options() {
  BenchOptions& o = options_;
  const auto add = [&](CLI::Option* option) {
    option->group(kMeasuring);
    return option;
  };
  add(app_->add_option(
          "--capability", o.capabilities,
          "With --torch, --train or --linear: ATEN_CPU_CAPABILITY for the "
          "rival, the best of\nwhich counts; default: default, "
          "and avx512 where there is one"))
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"default", "avx2", "avx512"}));
  add(app_->add_option(
      "--only", o.only,
      "With --torch or --train: rows whose name contains this text"));
  add(app_->add_option("--longest", o.longest,
                       "With --linear: shorten what is longer than this; its "
                       "goal then does not count"))
      ->check(size_range());
  add(app_->add_flag("--quick", o.quick, "A short selection, few rounds"));
  add(app_->add_option("--threads", o.threads,
                       "Thread counts; default 1,2; with --linear 1"))
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(between(1, 1024));
  add(app_->add_option("--repeats", o.repeats, "Rounds; default 7, quick 3"))
      ->check(between(1, 1000000));
  add(app_->add_option("--min-time", o.min_time,
                       "Seconds for a case in a round; default 0.05"))
      ->check(between(0.0, 3600.0));
  add(app_->add_option("--seed", o.seed, "Seed of the random inputs"));
  add(app_->add_option("--json", o.json,
                       "Write JSON to a file, or instead of the table"))
      ->expected(0, 1)
      ->type_name("[FILE]");
}

int BenchCommand::run() {
  for (const CLI::Option* option : app_->get_options()) {
    if (option->get_group() == kGrid && option->count() > 0) {
      options_.grid = true;
    }
  }
  if (app_->count("--json") > 0 && options_.json.value_or("").empty()) {
    options_.json = "-";
  }
  check_modes();
  if (options_.json && *options_.json != "-")
    base::check_writable(*options_.json);
  if (options_.calibrate) return run_calibration();
  const bool duels = options_.torch || options_.train;
  print(options_.linear ? run_linear() : duels ? run_torch() : run_core());
  return base::kExitDone;
}

void BenchCommand::check_modes() const {
  const BenchOptions& o = options_;
  const int modes = static_cast<int>(o.torch) + static_cast<int>(o.train) +
                    static_cast<int>(o.linear) + static_cast<int>(o.calibrate);
  if (modes > 1) {
    throw base::UsageError(
        "--torch, --train, --linear and --calibrate: give one of them");
  }
  if (modes == 1 && o.grid) {
    throw base::UsageError(
        "--torch, --train, --linear and --calibrate have tables of their own, "
        "without cases of yours");
  }
  const bool duels = o.torch || o.train;
  if (!duels && !o.only.empty()) {
    throw base::UsageError("--only goes with --torch or --train");
  }
  if (!duels && !o.linear && !o.capabilities.empty()) {
    throw base::UsageError(
        "--capability goes with --torch, --train or --linear");
  }
  if (!o.linear && o.longest)
    throw base::UsageError("--longest goes with --linear");
}

void BenchCommand::print(const Report& report) const {
  if (options_.json == "-") return base::print_text(report.json);
  base::print_text(report.table);
  if (options_.json) base::write_text_file(*options_.json, report.json);
}

int BenchCommand::run_calibration() const {
  cli::checked_target();
  const Calibration calibration = calibrate();
  print({base::json_text(calibration_json(calibration)),
         machine_line() + "\n\n" + calibration_text(calibration)});
  return calibration.written ? base::kExitDone : base::kExitFailure;
}

BenchCommand::Report BenchCommand::run_linear() const {
  const std::string machine = machine_line();
  const LinearReport report =
      bench_linear(options_, base::progress_style(options_.json == "-"));
  return {base::json_text(linear_json(report)),
          machine + "\n\n" + linear_text(report, wants_colours())};
}

BenchCommand::Report BenchCommand::run_core() const {
  const std::string machine = machine_line();
  const auto figures =
      select_figures(options_, base::hardware_threads(), machine_memory());
  const auto measurements = measure_all(figures, options_);
  return {bench_json(measurements).dump(2) + "\n",
          bench_table(measurements, {wants_colours(), machine})};
}

BenchCommand::Report BenchCommand::run_torch() const {
  const std::string machine = machine_line();
  const auto rows =
      bench_torch(options_, base::progress_style(options_.json == "-"));
  return {duel_json(rows).dump(2) + "\n",
          machine + "\n\n" + duel_table(rows, wants_colours())};
}

}  // namespace polyattn::bench
