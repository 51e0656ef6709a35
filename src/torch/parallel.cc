#include "torch/parallel.h"

#include <ATen/Parallel.h>

#include <atomic>

namespace polyattn {

TorchParallel::TorchParallel()
    : workers_(at::in_parallel_region() ? 1 : at::get_num_threads()) {}

// Every worker takes the next task when it is free: tasks are not equally long
// (causal attention), and at::parallel_for alone would deal them out in equal
// numbers.
void TorchParallel::run(std::int64_t tasks, TaskBody body) {
  if (workers_ == 1 || tasks <= 1) return SerialParallel().run(tasks, body);
  std::atomic<std::int64_t> next{0};
  at::parallel_for(0, workers_, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t worker = begin; worker < end; ++worker) {
      for (std::int64_t task = next++; task < tasks; task = next++) {
        body(task, static_cast<int>(worker));
      }
    }
  });
}

}  // namespace polyattn
