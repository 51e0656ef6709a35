#include <stdexcept>

#include "cli/theory_run.h"

namespace polyattn::cli {
namespace {

[[noreturn]] void refuse_theory_run() {
  throw std::runtime_error(
      "this build has no torch, and cannot read the model of a run: install "
      "libtorch-dev and build again");
}

}  // namespace

TheoryRunNorms norms_of_run(const TheoryRunOptions&) { refuse_theory_run(); }

RunRoots roots_of_run(const TheoryRunOptions&, const std::string&) {
  refuse_theory_run();
}

}  // namespace polyattn::cli
