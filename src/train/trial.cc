#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "train/examples.h"
#include "train/network.h"
#include "train/optimizers.h"
#include "train/prefetch.h"
#include "train/step.h"
#include "train/teacher.h"
#include "train/trainer.h"

namespace polyattn::train {
namespace {

using TrialClock = std::chrono::steady_clock;

double seconds_from(TrialClock::time_point start) {
  return std::chrono::duration<double>(TrialClock::now() - start).count();
}

double median(std::vector<double> values) {
  const auto middle =
      values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double evaluation_seconds(Network& network, const Examples& examples) {
  constexpr std::int64_t kTries = 3;
  const torch::NoGradGuard no_grad;
  std::vector<double> times;
  for (std::int64_t i = 0; i < std::min(kTries, examples.test_batches()); ++i) {
    const auto start = TrialClock::now();
    network.logits(examples.test_batch(i));
    times.push_back(seconds_from(start));
  }
  return median(times) * static_cast<double>(examples.test_batches());
}

}  // namespace

TrialTimes measure_times(const run::Config& config,
                         const std::shared_ptr<const TaskData>& data,
                         double seconds) {
  constexpr std::int64_t kFewest = 5;
  constexpr std::int64_t kMost = 100000;
  at::set_num_threads(static_cast<int>(config.train.threads));
  const auto examples = make_examples(data, config);
  const TaskShape shape = shape_of(*data, config.task);
  const auto network = make_network(config, shape);
  const auto teacher = make_teacher(config, shape, examples->pixels());
  network->module().train();
  const auto optimizer = make_optimizer(network->module(), config.train);
  Stepper stepper(config, *network, *optimizer, kMost, teacher.get());
  Prefetcher batches(
      [&](std::int64_t index) { return examples->train_batch(index); }, 0,
      kMost * config.train.accumulate);
  std::vector<double> times;
  const auto start = TrialClock::now();
  for (std::int64_t i = 0; i < kFewest || seconds_from(start) < seconds; ++i) {
    const auto begin = TrialClock::now();
    stepper.make(batches, i, false);
    times.push_back(seconds_from(begin));
  }
  return {.step = median(times),
          .evaluation = evaluation_seconds(*network, *examples)};
}

}  // namespace polyattn::train
