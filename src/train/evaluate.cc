#include "train/evaluate.h"

#include <cmath>
#include <numbers>

#include "train/evaluation_mode.h"
#include "train/physics_task.h"
#include "train/prefetch.h"

namespace polyattn::train {

run::Evaluation evaluate(Network& network, const Examples& examples, bool text,
                         const std::function<void(double)>& progress) {
  if (examples.whole() != nullptr) {
    return evaluate_physics(network, examples, progress);
  }
  const torch::NoGradGuard no_grad;
  const EvaluationMode mode(network.module());
  const std::int64_t batches = examples.test_batches();
  Prefetcher prefetcher(
      [&](std::int64_t index) { return examples.test_batch(index); }, 0,
      batches);
  double loss = 0;
  std::int64_t correct = 0;
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < batches; ++i) {
    const Batch batch = prefetcher.next();
    const torch::Tensor logits = network.logits(batch).to(torch::kFloat);
    loss +=
        torch::cross_entropy_loss(logits, batch.targets, {}, at::Reduction::Sum)
            .item<double>();
    correct += logits.argmax(1).eq(batch.targets).sum().item<std::int64_t>();
    count += batch.targets.ge(0).sum().item<std::int64_t>();
    if (progress) {
      progress(static_cast<double>(i + 1) / static_cast<double>(batches));
    }
  }
  run::Evaluation result;
  result.loss = loss / static_cast<double>(count);
  if (text) {
    const double share =
        static_cast<double>(count) / static_cast<double>(examples.test_bytes());
    result.bits_per_byte = result.loss / std::numbers::ln2 * share;
  } else {
    result.accuracy = static_cast<double>(correct) / static_cast<double>(count);
  }
  return result;
}

}  // namespace polyattn::train
