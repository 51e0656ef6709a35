// What `polyattn theory` asks of a trained run. In a build without torch these
// throw std::runtime_error.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "theory/trained.h"

namespace polyattn::cli {

struct TheoryRunOptions {
  std::string folder;
  bool best = false;
  std::string data;  // path; empty: as the run had it
  int threads = 1;
};

// A layer for each head, with means over a batch of the test set.
struct TheoryRunNorms {
  std::string task;
  std::int64_t examples = 0;
  std::vector<theory::MeasuredLayer> layers;
};

TheoryRunNorms norms_of_run(const TheoryRunOptions& options);

// Root mean squares of ||A||_F by layer, on the run's own queries and keys.
struct RunRoots {
  std::string activation;  // the run's own
  std::int64_t tokens = 0;
  std::vector<double> own, other;
};

RunRoots roots_of_run(const TheoryRunOptions& options,
                      const std::string& other);

}  // namespace polyattn::cli
