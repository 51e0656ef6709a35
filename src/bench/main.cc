// polyattn-bench: called by `polyattn bench`.
#include <CLI/CLI.hpp>

#include "bench/bench.h"
#include "cli/program.h"

int main(int argc, char** argv) {
  return polyattn::cli::run_program("polyattn", [&] {
    CLI::App app{"polyattn-bench: how fast attention is on this machine.",
                 "polyattn"};
    app.require_subcommand(1);
    polyattn::bench::BenchCommand bench(app);
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      return polyattn::cli::end_parsing(app, error);
    }
    polyattn::cli::use_kept_costs();
    return bench.run();
  });
}
