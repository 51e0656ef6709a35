// The options of each benchmark on the command line.
#pragma once

#include <CLI/CLI.hpp>

#include "bench/options.h"

namespace polyattn::bench {

// Of cases of one's own.
void add_grid_options(CLI::App& app, Options& options);
// --capability, of what is compared with libtorch.
void add_capability_option(CLI::App& app, Options& options);
// --only, of the rows of libtorch.
void add_only_option(CLI::App& app, Options& options);
// --longest, of linear.
void add_longest_option(CLI::App& app, Options& options);

// Of data: one number of threads, workers, an activation.
void add_data_options(CLI::App& app, Options& options);

// Of time-to-quality.
void add_quality_options(CLI::App& app, Options& options);

// What the help says.
struct RunDefaults {
  const char* threads = "1,2";
  int rounds = 7;
};
// Threads, rounds and inputs.
void add_run_options(CLI::App& app, Options& options,
                     const RunDefaults& defaults = {});
// --seed alone.
void add_scaling_options(CLI::App& app, Options& options);
void add_seed_option(CLI::App& app, Options& options);
void add_json_option(CLI::App& app, Options& options);

// Whether one of the grid options was given.
bool has_grid(const CLI::App& app);

}  // namespace polyattn::bench
