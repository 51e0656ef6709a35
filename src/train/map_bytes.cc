#include "train/map_bytes.h"

#include <algorithm>
#include <cmath>

#include "base/base64.h"

namespace polyattn::train {

base::Json map_json(const torch::Tensor& weights) {
  const torch::Tensor dense = weights.to(torch::kFloat).contiguous();
  const float* const values = dense.data_ptr<float>();
  float scale = 0;
  for (std::int64_t i = 0; i < dense.numel(); ++i) {
    if (std::isfinite(values[i])) scale = std::max(scale, std::abs(values[i]));
  }
  std::vector<std::uint8_t> bytes;
  bytes.reserve(static_cast<std::size_t>(dense.numel()));
  for (std::int64_t i = 0; i < dense.numel(); ++i) {
    const float share =
        scale > 0 && std::isfinite(values[i]) ? values[i] / scale : 0;
    bytes.push_back(static_cast<std::uint8_t>(
        static_cast<std::int8_t>(std::lround(127 * share))));
  }
  return {{"scale", scale}, {"values", base::base64(bytes)}};
}

std::vector<std::int64_t> spread(std::int64_t count, std::int64_t all) {
  count = std::clamp<std::int64_t>(count, 1, all);
  std::vector<std::int64_t> chosen;
  for (std::int64_t i = 0; i < count; ++i) {
    chosen.push_back(count == 1 ? all - 1 : i * (all - 1) / (count - 1));
  }
  return chosen;
}

}  // namespace polyattn::train
