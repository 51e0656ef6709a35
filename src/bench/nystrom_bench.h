// `polyattn bench nystrom`: what is left of the pseudo-inverse, and of the
// whole, where attention by way of landmarks is not softmax.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/options.h"

namespace polyattn::bench {

// One way to Z. Not finite where an iteration ran away.
struct InverseFigures {
  std::string inverse;  // published, six steps, ten steps, singular values
  double residual = 0;  // ||A Z A - A|| / ||A||
  double error = 0;     // ||F Z B - W|| / ||W||, W the matrix of full attention
};

// Medians over the heads; norms are Frobenius's.
struct NystromFigures {
  std::string rows;  // how the rows of q and k hang together
  std::string activation;
  std::string start;     // plain or matched
  double norm = 0;       // ||W||
  double condition = 0;  // largest over smallest singular value of A
  double largest = 0;    // of A Z at first, published: it converges below 3
  double best = 0;       // error of the nearest matrix of that rank to W
  std::vector<InverseFigures> inverses;
};

struct NystromStudy {
  std::int64_t tokens = 0, landmarks = 0, width = 0, heads = 0;
  std::vector<NystromFigures> cases;
};

// Throws UsageError without torch.
NystromStudy bench_nystrom(const Options& options);

std::string nystrom_text(const NystromStudy& study);
nlohmann::ordered_json nystrom_json(const NystromStudy& study);

}  // namespace polyattn::bench
