#include "bench/command_options.h"

#include <fmt/format.h>

#include <algorithm>

namespace polyattn::bench {
namespace {

constexpr const char* kGrid = "Cases of your own (any of these)";

// Checks a range and keeps it out of the help text.
template <typename T>
CLI::Validator between(T low, T high) {
  return CLI::Range(low, high).description("");
}

CLI::Validator size_range() {
  return between(std::int64_t{1}, std::int64_t{1} << 30);
}

}  // namespace

void add_grid_options(CLI::App& app, Options& o) {
  const auto list = [](CLI::Option* option) {
    option->delimiter(',')->allow_extra_args(false);
    return option;
  };
  list(app.add_option("--op", o.ops, "forward, backward or both"))
      ->check(CLI::IsMember({"forward", "backward"}));
  app.add_option("--activation", o.activations,
                 "Formula such as softmax or x^3/sqrt(N); may be repeated")
      ->allow_extra_args(false);
  list(app.add_option("--dtype", o.dtypes, "Storage: f32, bf16, f16, f64"))
      ->check(CLI::IsMember({"f32", "bf16", "f16", "f64"}));
  app.add_option("--batch", o.batch, "B")->check(size_range());
  app.add_option("--heads", o.heads, "H, query heads")->check(size_range());
  app.add_option("--kv-heads", o.kv_heads, "G, key heads: divides H")
      ->check(size_range());
  list(app.add_option("--length", o.lengths, "N, queries"))
      ->check(size_range());
  app.add_option("--keys", o.keys, "M, keys; as many as queries")
      ->check(size_range());
  list(app.add_option("--width", o.widths, "D, width of q and k"))
      ->check(size_range());
  app.add_option("--value-width", o.value_width, "E, width of v; as D")
      ->check(size_range());
  app.add_option("--causal", o.causal,
                 "none, or aligned at the first or the last key")
      ->check(CLI::IsMember({"none", "first", "last"}));
  app.add_flag("--stats", o.stats, "Also compute the statistics (forward)");
  app.add_option("--path", o.path,
                 "dense (default), linear, or auto: what the planner takes")
      ->check(CLI::IsMember({"dense", "linear", "auto"}));
  for (CLI::Option* option : app.get_options()) {
    if (option != app.get_help_ptr() && option->get_name() != "--only")
      option->group(kGrid);
  }
}

void add_capability_option(CLI::App& app, Options& o) {
  app.add_option("--capability", o.capabilities,
                 "ATEN_CPU_CAPABILITY for libtorch, the best of which counts; "
                 "default: default,\nand avx512 where there is one")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"default", "avx2", "avx512"}));
}

void add_only_option(CLI::App& app, Options& o) {
  app.add_option("--only", o.only, "Rows whose name contains this text");
}

void add_longest_option(CLI::App& app, Options& o) {
  app.add_option("--longest", o.longest,
                 "Shorten what is longer than this; its goal then does not "
                 "count")
      ->check(size_range());
}

void add_data_options(CLI::App& app, Options& o) {
  app.add_option("--activation", o.activations, "Formula; default x^3/sqrt(N)")
      ->expected(1);
  app.add_option("--threads", o.threads, "Threads of training; default all")
      ->expected(1)
      ->check(between(1, 1024));
  app.add_option("--workers", o.workers,
                 "Threads that decode and augment; 0: as many")
      ->check(between(0, 1024));
  app.add_flag("--quick", o.quick, "Few images and steps");
  app.add_option("--repeats", o.repeats,
                 "Steps of training; default 10, quick 2")
      ->check(between(1, 1000000));
  app.add_option("--min-time", o.min_time,
                 "Seconds of loading; default 3, quick 0.2")
      ->check(between(0.0, 3600.0));
  app.add_option("--seed", o.seed, "Seed of the images and weights");
}

void add_quality_options(CLI::App& app, Options& o) {
  app.add_option("task", o.quality.task,
                 "imdb, cifar10-pixels, listops, ...: of sequences")
      ->required();
  app.add_option("--activations", o.quality.arms,
                 "Formulas, softmax first, as `polyattn compare` takes them")
      ->capture_default_str();
  app.add_option("--seeds", o.quality.seeds, "Runs of each")
      ->check(between(1, 1000))
      ->capture_default_str();
  app.add_option("--set", o.quality.settings,
                 "Change a key of the config; may be repeated")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  app.add_option("--out", o.quality.out,
                 "Folder of the runs; default runs/time-to-quality-TASK")
      ->type_name("DIR");
  app.add_flag("--prepare", o.quality.prepare,
               "Write the steps for PyTorch into it, and train nothing");
  app.add_option("--pytorch", o.quality.pytorch,
                 "What a step takes in PyTorch, by examples/pytorch_steps.py; "
                 "may be repeated")
      ->allow_extra_args(false)
      ->type_name("FILE");
  app.add_option("--batches", o.quality.batches,
                 "Batches that are timed, the first ones of a run")
      ->check(between(1, 10000))
      ->capture_default_str();
  app.add_option("--repeats", o.repeats, "Rounds over them; default 3")
      ->check(between(1, 1000));
  app.add_option("--threads", o.threads, "Of the timed steps; default 1")
      ->expected(1)
      ->check(between(1, 1024));
}

void add_run_options(CLI::App& app, Options& o, const RunDefaults& defaults) {
  app.add_flag("--quick", o.quick, "A short selection, few rounds");
  app.add_option("--threads", o.threads,
                 fmt::format("Thread counts; default {}", defaults.threads))
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(between(1, 1024));
  app.add_option("--repeats", o.repeats,
                 fmt::format("Rounds; default {}, quick 3", defaults.rounds))
      ->check(between(1, 1000000));
  app.add_option("--min-time", o.min_time,
                 "Seconds for a case in a round; default 0.05")
      ->check(between(0.0, 3600.0));
  add_seed_option(app, o);
}

void add_scaling_options(CLI::App& app, Options& o) {
  app.add_flag("--quick", o.quick, "Time each call once");
  app.add_option("--repeats", o.repeats,
                 "Calls, of whose tasks the least time counts; default 3")
      ->check(between(1, 1000));
  add_seed_option(app, o);
}

void add_seed_option(CLI::App& app, Options& o) {
  app.add_option("--seed", o.seed, "Seed of the random inputs");
}

void add_json_option(CLI::App& app, Options& o) {
  app.add_option("--json", o.json,
                 "Write JSON to a file, or instead of the table")
      ->expected(0, 1)
      ->type_name("[FILE]");
}

bool has_grid(const CLI::App& app) {
  const auto options = app.get_options();
  return std::any_of(
      options.begin(), options.end(), [](const CLI::Option* option) {
        return option->get_group() == kGrid && option->count() > 0;
      });
}

}  // namespace polyattn::bench
