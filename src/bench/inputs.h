// A case brought to life: its arrays, its workspace, and a call that can be
// timed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "bench/cases.h"
#include "polyattn/parallel.h"

namespace polyattn::bench {

// A dense array on a cache line of its own, every page of it touched.
class Array {
 public:
  Array() = default;
  Array(DType dtype, const Extents& size);

  Tensor tensor() const { return view(data_.get(), dtype_, size_); }
  void* data() const { return data_.get(); }
  void fill_normal(std::uint64_t seed);

 private:
  struct Free {
    void operator()(void* pointer) const { std::free(pointer); }
  };
  DType dtype_ = DType::kF32;
  Extents size_{};
  std::unique_ptr<void, Free> data_;
};

// q, k, v and (for backward) d_o are standard normal, the same for one seed
// and shape whatever the type, causality or threads.
class CaseRunner {
 public:
  CaseRunner(const BenchCase& c, std::uint64_t seed);

  // The operation, once.
  void run();
  // With other workers; `parallel` has no more of them than the case.
  void run(Parallel& parallel);

  const BenchCase& bench_case() const { return case_; }
  AttentionInputs inputs() const;
  AttentionConfig config() const;
  Tensor o() const { return o_.tensor(); }
  ConstTensor d_o() const { return d_o_.tensor(); }
  AttentionGradients gradients() const;

  // Workspace and row states: all that a call needs beside its operands.
  std::int64_t extra_bytes() const;
  std::int64_t row_bytes() const;

 private:
  void run_forward(std::span<std::byte> workspace, Parallel& parallel);
  void run_backward(Parallel& parallel);

  BenchCase case_;
  DefaultParallel parallel_;
  Array q_, k_, v_, o_, d_o_, dq_, dk_, dv_;
  std::vector<RowState> rows_;
  std::vector<AttentionStats> stats_;
  std::size_t workspace_size_ = 0;
  // Not zeroed, so that only what the kernel touches becomes resident.
  std::unique_ptr<std::byte[]> workspace_;
};

}  // namespace polyattn::bench
