// Comparisons made up: figure = activation + seed + noise.
#pragma once

#include <vector>

#include "base/random.h"
#include "train/run/differences.h"

namespace polyattn::run::test {

struct MadeUp {
  int seeds = 2;
  int activations = 2;
  std::vector<double> deviations = {};  // of the noise, for each activation
  bool differ = false;                  // half of them, from the reference
  bool missing = false;                 // a seed of the last
};

// About 5 noises of a difference: some are found, some are not.
inline constexpr double kDifference = 5;

inline double truth(const MadeUp& setting, int activation) {
  return setting.differ && activation % 2 == 1 ? kDifference : 0;
}

inline std::vector<SeedFigures> make_up(const MadeUp& setting,
                                        base::Random& random) {
  std::vector<SeedFigures> rows(static_cast<std::size_t>(setting.activations));
  for (int seed = 1; seed <= setting.seeds; ++seed) {
    const double of_seed = 10 * random.normal();
    for (int a = 0; a < setting.activations; ++a) {
      const auto row = static_cast<std::size_t>(a);
      rows[row][seed] = truth(setting, a) + of_seed +
                        setting.deviations[row] * random.normal();
    }
  }
  if (setting.missing) rows.back().erase(1);
  return rows;
}

}  // namespace polyattn::run::test
