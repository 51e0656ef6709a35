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
    const auto code = polyattn::cli::parse_arguments(app, argc, argv);
    if (code) return *code;
    polyattn::cli::use_kept_costs();
    return bench.run();
  });
}
