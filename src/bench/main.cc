// polyattn-bench: called by `polyattn bench`, with the same arguments.
#include <string_view>

#include "bench/command.h"
#include "cli/program.h"

int main(int argc, char** argv) {
  return polyattn::cli::run_program("polyattn", [&] {
    const bool called = argc > 1 && std::string_view(argv[1]) == "bench";
    polyattn::cli::use_kept_costs();
    return polyattn::bench::run_bench({argv + (called ? 2 : 1), argv + argc});
  });
}
