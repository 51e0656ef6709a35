// The core's parallel-for on libtorch's own threads.
#pragma once

#include "polyattn/parallel.h"

namespace polyattn {

class TorchParallel final : public Parallel {
 public:
  TorchParallel();
  int workers() const override { return workers_; }
  void run(std::int64_t tasks, TaskBody body) override;

 private:
  int workers_;
};

}  // namespace polyattn
