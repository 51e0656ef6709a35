#include "train/mixup.h"

namespace polyattn::train {

void mix_with_reverse(Batch& batch) {
  const std::int64_t count = batch.inputs.size(0);
  const std::int64_t size = batch.inputs.numel() / count;
  const auto a = static_cast<float>(batch.share);
  const auto b = static_cast<float>(1 - batch.share);
  float* images = batch.inputs.data_ptr<float>();
  batch.others = torch::empty({count}, torch::kLong);
  const auto* classes = batch.targets.data_ptr<std::int64_t>();
  auto* others = batch.others.data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < count; ++i) others[i] = classes[count - 1 - i];
  for (std::int64_t i = 0; i < count / 2; ++i) {
    float* x = images + i * size;
    float* y = images + (count - 1 - i) * size;
    for (std::int64_t j = 0; j < size; ++j) {
      const float left = x[j];
      const float right = y[j];
      x[j] = a * left + b * right;
      y[j] = a * right + b * left;
    }
  }
}

}  // namespace polyattn::train
