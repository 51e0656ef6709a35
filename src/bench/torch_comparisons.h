// What `bench torch` measures: the ops and modules on torch tensors against
// the same in libtorch's own ops, run eagerly.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/measure.h"

namespace polyattn::bench {

// Ours against the same in libtorch.
struct Comparison {
  std::string name;
  std::string baseline_name;
  std::string unit = "ms";     // or MB: peak memory
  std::optional<double> goal;  // the least speed-up, or so much less memory
  double effort = 1;           // about how long it takes, in any unit
  // What a call works through, such as 64 images; 0 if that is not counted.
  std::int64_t items = 0;
  std::string item_name = {};
  // Draws the inputs, and throws std::runtime_error if the two disagree.
  std::function<Calls(std::uint64_t seed)> prepare;
};

// The table of goals, or a short selection.
std::vector<Comparison> torch_comparisons(bool quick);

// With this many of libtorch's threads.
Row run_comparison(const Comparison& comparison, int threads,
                   const RunOptions& options);

// How far the resident size rises during the call.
double peak_megabytes(const std::function<void()>& call);

// While it lives, libtorch has so many threads.
class TorchThreads {
 public:
  explicit TorchThreads(int threads);
  ~TorchThreads();
  TorchThreads(const TorchThreads&) = delete;
  TorchThreads& operator=(const TorchThreads&) = delete;

 private:
  int before_;
};

// The instruction set that libtorch uses in this process, such as AVX2.
std::string torch_capability();

}  // namespace polyattn::bench
