#include "bench/command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <memory>

#include "base/output.h"
#include "base/program.h"
#include "base/progress.h"
#include "base/text_file.h"
#include "bench/calibrate.h"
#include "bench/command_options.h"
#include "bench/data_bench.h"
#include "bench/linear.h"
#include "bench/nystrom_bench.h"
#include "bench/scaling.h"
#include "bench/time_to_quality.h"
#include "bench/torch_bench.h"
#include "cli/program.h"
#include "polyattn/activation.h"

namespace polyattn::bench {
namespace {

struct Benchmark {
  const char* name;
  const char* about;
  const char* examples;
  void (*add_options)(CLI::App&, Options&);
};

void add_torch_options(CLI::App& app, Options& options) {
  add_only_option(app, options);
  add_capability_option(app, options);
  add_run_options(app, options);
}

constexpr const char* kQualityExamples =
    "  polyattn bench time-to-quality imdb --prepare\n"
    "  python3 examples/pytorch_steps.py "
    "runs/time-to-quality-imdb/steps.safetensors \\\n"
    "      --json pytorch.json\n"
    "  polyattn bench time-to-quality imdb --pytorch pytorch.json --json "
    "quality.json\n"
    "  polyattn report runs/time-to-quality-imdb --bench quality.json\n";

const Benchmark kBenchmarks[] = {
    {"core", "The kernels against OpenBLAS, or cases of your own; the default",
     "  polyattn bench --quick\n"
     "  polyattn bench --activation softmax --activation 'x^4/sum' --length "
     "512,2048 --causal first\n"
     "  polyattn bench --op forward --dtype f32,bf16 --width 128 --json "
     "out.json\n"
     "  polyattn bench --only H=192 --threads 1     # short sequences\n",
     [](CLI::App& app, Options& options) {
       add_only_option(app, options);
       add_grid_options(app, options);
       add_run_options(app, options);
     }},
    {"torch", "The torch ops against libtorch",
     "  polyattn bench torch --threads 2\n", add_torch_options},
    {"derivatives", "Second derivatives against libtorch",
     "  polyattn bench derivatives --only softmax\n", add_torch_options},
    {"train", "Steps of training against libtorch",
     "  polyattn bench train --only ViT\n", add_torch_options},
    {"linear", "Attention in linear time, decoding and the planner",
     "  polyattn bench linear --longest 16384\n"
     "  polyattn bench linear --only 'time a token'     # decoding\n",
     [](CLI::App& app, Options& options) {
       add_only_option(app, options);
       add_longest_option(app, options);
       add_capability_option(app, options);
       add_run_options(app, options, {.threads = "1", .rounds = 5});
     }},
    {"scaling", "What the cut into tasks leaves of 2 to 256 workers",
     "  polyattn bench scaling --only causal\n",
     [](CLI::App& app, Options& options) {
       add_only_option(app, options);
       add_longest_option(app, options);
       add_scaling_options(app, options);
     }},
    {"data", "Images decoded and augmented, against what a model takes",
     "  polyattn bench data --workers 1\n", add_data_options},
    {"time-to-quality",
     "Processor time until a model is as good as softmax, less half a point",
     kQualityExamples, add_quality_options},
    {"nystrom", "How good attention by way of landmarks is, by formula",
     "  polyattn bench nystrom\n",
     [](CLI::App& app, Options& options) { add_seed_option(app, options); }},
    {"calibrate", "Measure what the planner needs to know of this machine",
     "  polyattn bench calibrate\n", [](CLI::App&, Options&) {}},
};

double machine_memory() {
  return static_cast<double>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<double>(::sysconf(_SC_PAGESIZE));
}

std::string machine_line() {
  return fmt::format("polyattn {} bench, target {}, {} hardware threads\n",
                     base::version_number(), cli::checked_target(),
                     base::hardware_threads());
}

bool wants_colours() {
  return ::isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
}

std::vector<Task> core_tasks(const Options& options) {
  const RunOptions run = run_options(options);
  const auto bench = std::make_shared<Bench>(run);
  std::vector<Task> tasks;
  for (const Figure& figure :
       select_figures(options, base::hardware_threads(), machine_memory())) {
    tasks.push_back(
        {fmt::format("{}, threads: {}", figure.name, figure.subject.threads),
         effort_of(figure, run), [=](Report& report) {
           report.rows.push_back(bench->measure(figure));
         }});
  }
  return tasks;
}

Report report_of(const std::string& name, const Options& options) {
  const auto style = base::progress_style(options.json == "-");
  if (name == "core") return run_tasks(core_tasks(options), style);
  if (name == "linear") return run_tasks(linear_tasks(options), style);
  return bench_torch(name, options, style);
}

void add_benchmarks(CLI::App& bench, Options& options) {
  bench.require_subcommand(1);
  std::string examples;
  for (const Benchmark& benchmark : kBenchmarks) {
    CLI::App* app = bench.add_subcommand(benchmark.name, benchmark.about);
    benchmark.add_options(*app, options);
    add_json_option(*app, options);
    app->footer(std::string("Examples:\n") + benchmark.examples);
    examples += benchmark.examples;
  }
  bench.footer(
      "Without a name: the table of goals of core, some minutes. Ours and its "
      "baseline take\nturns (core: with sgemm, 2048³, before and after); a "
      "ratio is formed inside a round,\nand the median is shown with its "
      "quartiles. `polyattn bench NAME --help` lists options.\n\nExamples:\n" +
      examples);
}

void print(const Options& options, const std::string& text,
           const nlohmann::ordered_json& json) {
  if (options.json == "-") return base::print_json(json);
  base::print_text(text);
  if (options.json) {
    base::write_text_file(*options.json, base::json_text(json));
  }
}

int run_time_to_quality(Options& options, const std::string& machine) {
  if (options.quality.out.empty()) {
    options.quality.out = "runs/time-to-quality-" + options.quality.task;
  }
  const QualityOutcome outcome = time_to_quality(options);
  const std::string rows = outcome.report.rows.empty()
                               ? ""
                               : report_text(outcome.report, wants_colours());
  print(options, machine + "\n" + outcome.text + rows,
        report_json(outcome.report));
  return base::kExitDone;
}

int run_chosen(const CLI::App& chosen, Options& options) {
  options.grid = has_grid(chosen);
  if (chosen.count("--json") > 0 && options.json.value_or("").empty()) {
    options.json = "-";
  }
  if (options.json && *options.json != "-") base::check_writable(*options.json);
  const std::string machine = machine_line();
  if (chosen.get_name() == "calibrate") {
    const Calibration calibration = calibrate();
    print(options, machine + "\n" + calibration_text(calibration),
          calibration_json(calibration));
    return calibration.written ? base::kExitDone : base::kExitFailure;
  }
  if (chosen.get_name() == "data") {
    // A formula that does not parse is told before images are made.
    Activation::parse(options.activations.front());
    const DataFigures figures = bench_data(options);
    print(options, machine + "\n" + data_text(figures), data_json(figures));
    return base::kExitDone;
  }
  if (chosen.get_name() == "time-to-quality") {
    return run_time_to_quality(options, machine);
  }
  if (chosen.get_name() == "scaling") {
    const auto rows = bench_scaling(options);
    print(options, machine + "\n" + scaling_text(rows), scaling_json(rows));
    return base::kExitDone;
  }
  if (chosen.get_name() == "nystrom") {
    const NystromStudy study = bench_nystrom(options);
    print(options, machine + "\n" + nystrom_text(study), nystrom_json(study));
    return base::kExitDone;
  }
  const Report report = report_of(chosen.get_name(), options);
  print(options, machine + report_text(report, wants_colours()),
        report_json(report));
  return base::kExitDone;
}

}  // namespace

std::vector<std::string> with_name(std::vector<std::string> arguments) {
  const std::string first = arguments.empty() ? "" : arguments[0];
  if (first == "--help" || first == "-h") return arguments;
  for (const Benchmark& benchmark : kBenchmarks) {
    if (first == benchmark.name) return arguments;
  }
  for (const Benchmark& benchmark : kBenchmarks) {
    const std::string flag = std::string("--") + benchmark.name;
    if (std::erase(arguments, flag) == 0) continue;
    throw base::UsageError(
        fmt::format("bench {} is now a name: polyattn bench {} {}", flag,
                    benchmark.name, fmt::join(arguments, " ")));
  }
  if (!first.empty() && first[0] != '-') {
    std::vector<const char*> names;
    for (const Benchmark& benchmark : kBenchmarks) {
      names.push_back(benchmark.name);
    }
    throw base::UsageError(fmt::format("bench {}: it is one of {}", first,
                                       fmt::join(names, ", ")));
  }
  arguments.insert(arguments.begin(), "core");
  return arguments;
}

int run_bench(const std::vector<std::string>& arguments) {
  CLI::App bench(
      "How fast attention is on this machine, against OpenBLAS or "
      "libtorch.",
      "polyattn bench");
  Options options;
  add_benchmarks(bench, options);
  const auto code = cli::parse_arguments(bench, with_name(arguments));
  if (code) return *code;
  return run_chosen(*bench.get_subcommands().at(0), options);
}

}  // namespace polyattn::bench
