#include "train/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace polyattn::train {

std::int64_t draw_token(std::span<const float> logits,
                        const SamplingOptions& options, Random& random) {
  std::vector<std::int64_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto logit = [&](std::int64_t token) {
    return static_cast<double>(logits[static_cast<std::size_t>(token)]);
  };
  std::stable_sort(
      order.begin(), order.end(),
      [&](std::int64_t a, std::int64_t b) { return logit(a) > logit(b); });
  if (options.temperature <= 0) return order.front();

  std::size_t kept = order.size();
  if (options.top_k > 0) {
    kept = std::min(kept, static_cast<std::size_t>(options.top_k));
  }
  std::vector<double> weights(kept);
  for (std::size_t i = 0; i < kept; ++i) {
    weights[i] =
        std::exp((logit(order[i]) - logit(order[0])) / options.temperature);
  }
  const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
  double sum = 0;
  std::size_t end = 0;
  while (end < kept && sum < options.top_p * all) sum += weights[end++];
  end = std::max<std::size_t>(end, 1);

  double left = random.uniform() * std::max(sum, weights[0]);
  for (std::size_t i = 0; i + 1 < end; ++i) {
    left -= weights[i];
    if (left < 0) return order[i];
  }
  return order[end - 1];
}

}  // namespace polyattn::train
