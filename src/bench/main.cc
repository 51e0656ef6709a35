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
    return code ? *code : bench.run();
  });
}
