// `polyattn theory --run`: the norms of a trained model beside the theory, and
// the constant that fits its scores.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "theory/trained.h"

namespace polyattn::theory {

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
  std::vector<MeasuredLayer> layers;
};

// Root mean squares of ||A||_F by layer, on the run's own queries and keys.
struct RunRoots {
  std::string activation;  // the run's own
  std::int64_t tokens = 0;
  std::vector<double> own, other;
};

// Who can read the model of a run, which takes torch: not this room.
struct RunReader {
  TheoryRunNorms (*norms)(const TheoryRunOptions& options);
  // `other`: the activation to hold against the run's own.
  RunRoots (*roots)(const TheoryRunOptions& options, const std::string& other);
};

// Prints a table or JSON. kExitFailure if a norm is beyond a proven bound.
int show_trained(const RunReader& reader, const TheoryRunOptions& options,
                 bool json);

// The constant c with which c x^degree has the norm of softmax on the queries
// and keys of a softmax run, layer by layer and for all together. Throws
// base::UsageError for a run with another activation.
int show_calibrated_run(const RunReader& reader,
                        const TheoryRunOptions& options, int degree, bool json);

}  // namespace polyattn::theory
