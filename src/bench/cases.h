// What `bench core` measures: cases (one shape, one operation), and figures (a
// case against a yardstick, with the value that it must reach).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "polyattn/attention.h"

namespace polyattn::bench {

enum class Op { kForward, kBackward };

const char* name_of(Op op);

// Letters as in polyattn/attention.h.
struct BenchCase {
  Op op = Op::kForward;
  Activation activation;
  DType dtype = DType::kF32;
  std::int64_t b = 1, h = 1, g = 1, n = 1, m = 1, d = 1, e = 1;
  Causal causal = Causal::kNone;
  bool stats = false;
  int threads = 1;
  Path path = Path::kDense;
};

// The shape of a case, without data.
AttentionInputs shape_of(const BenchCase& c);
AttentionConfig config_of(const BenchCase& c);

// 2 N M (D + E) forward, 2 N M (3 D + 2 E) backward (scores recomputed), for
// each head; half for causal. On the linear path, with R features,
// 2 (N + M) R E forward and twice that backward, whatever is done inside.
double flops_of(const BenchCase& c);

// What the value of a row is.
enum class Measure {
  kSgemmRatio,  // our Gflop/s over those of sgemm
  kTimeRatio,   // ours over the baseline
  kSpeedup,     // the baseline over ours
  kMegabytes,   // memory beside inputs and outputs
  kGrowth,      // exponent g of a time that grows as N^g
};

enum class Bound { kAtLeast, kAtMost };

struct Goal {
  Bound bound = Bound::kAtLeast;
  double value = 0;
};

bool reaches(const Goal& goal, double value);

struct Figure {
  std::string name{};
  BenchCase subject{};
  Measure measure = Measure::kSgemmRatio;
  std::optional<BenchCase> baseline{};  // another case
  std::string baseline_name{};
  std::optional<Goal> goal{};
};

// The table of goals, for each of these thread counts.
std::vector<Figure> standard_figures(const std::vector<int>& threads);

// A few of them that give an impression.
std::vector<Figure> quick_figures(const std::vector<int>& threads);

// A name for a case that somebody asked for: "backward softmax bf16 ...".
std::string describe(const BenchCase& c);

}  // namespace polyattn::bench
