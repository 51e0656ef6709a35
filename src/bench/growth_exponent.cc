#include <fmt/format.h>

#include <cmath>
#include <stdexcept>

#include "bench/step_growth.h"

namespace polyattn::bench {

double growth_exponent(const std::vector<double>& lengths,
                       const std::vector<double>& times) {
  if (lengths.size() < 2 || lengths.size() != times.size()) {
    throw std::invalid_argument(fmt::format(
        "[growth_exponent] {} lengths, {} times, expected two or more of each",
        lengths.size(), times.size()));
  }
  const auto count = static_cast<double>(lengths.size());
  double x = 0, y = 0, xx = 0, xy = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (!(lengths[i] > 0 && times[i] > 0)) {
      throw std::invalid_argument(
          fmt::format("[growth_exponent] time {} at length {}, expected > 0",
                      times[i], lengths[i]));
    }
    const double a = std::log(lengths[i]);
    const double b = std::log(times[i]);
    x += a;
    y += b;
    xx += a * a;
    xy += a * b;
  }
  return (count * xy - x * y) / (count * xx - x * x);
}

}  // namespace polyattn::bench
