// What `bench --torch` measures: the ops and modules on torch tensors against
// the same in libtorch's own ops, run eagerly.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/duel.h"

namespace polyattn::bench {

struct TorchDuel {
  std::string name;
  std::string rival;
  DuelUnit unit = DuelUnit::kMilliseconds;
  std::optional<double> target;
  double effort = 1;  // about how long it takes, in any unit
  // What a call works through, such as 64 images; 0 if that is not counted.
  std::int64_t items = 0;
  std::string unit_name = {};
  // Draws the inputs, and throws std::runtime_error if the two disagree.
  std::function<DuelCalls(std::uint64_t seed)> prepare;
};

// The table of goals, or a short selection.
std::vector<TorchDuel> torch_duels(bool quick);

// With this many of libtorch's threads.
DuelRow run_torch_duel(const TorchDuel& duel, int threads,
                       const DuelRounds& rounds, std::uint64_t seed);

// The instruction set that libtorch uses in this process, such as AVX2.
std::string torch_capability();

}  // namespace polyattn::bench
