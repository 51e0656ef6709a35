#include "bench/inputs.h"

#include <cstring>
#include <new>

#include "base/random.h"

namespace polyattn::bench {
namespace {

constexpr std::size_t kCacheLine = 64;

}  // namespace

Array::Array(DType dtype, const Extents& size) : dtype_(dtype), size_(size) {
  const std::size_t bytes = element_count(size) * size_of(dtype);
  const std::size_t rounded = (bytes / kCacheLine + 1) * kCacheLine;
  data_.reset(std::aligned_alloc(kCacheLine, rounded));
  if (!data_) throw std::bad_alloc();
  std::memset(data_.get(), 0, rounded);
}

void Array::fill_normal(std::uint64_t seed) {
  base::Random random(seed);
  const std::int64_t count = element_count(size_);
  for (std::int64_t i = 0; i < count; ++i) {
    store_element(data_.get(), dtype_, i, static_cast<float>(random.normal()));
  }
}

CaseRunner::CaseRunner(const BenchCase& c, std::uint64_t seed)
    : case_(c),
      parallel_(c.threads),
      q_(c.dtype, {c.b, c.h, c.n, c.d}),
      k_(c.dtype, {c.b, c.g, c.m, c.d}),
      v_(c.dtype, {c.b, c.g, c.m, c.e}),
      o_(c.dtype, {c.b, c.h, c.n, c.e}),
      rows_(c.b * c.h * c.n),
      stats_(c.stats ? c.b * c.h : 0) {
  q_.fill_normal(seed);
  k_.fill_normal(seed + 1);
  v_.fill_normal(seed + 2);
  const int workers = parallel_.workers();
  if (c.op == Op::kBackward) {
    d_o_ = Array(c.dtype, {c.b, c.h, c.n, c.e});
    d_o_.fill_normal(seed + 3);
    dq_ = Array(c.dtype, {c.b, c.h, c.n, c.d});
    dk_ = Array(c.dtype, {c.b, c.g, c.m, c.d});
    dv_ = Array(c.dtype, {c.b, c.g, c.m, c.e});
    std::vector<std::byte> once(
        attention_forward_workspace(inputs(), config(), workers));
    run_forward(once, parallel_);
    workspace_size_ = attention_backward_workspace(inputs(), config(), workers);
  } else {
    workspace_size_ = attention_forward_workspace(inputs(), config(), workers);
  }
  workspace_ = std::make_unique_for_overwrite<std::byte[]>(workspace_size_);
}

AttentionInputs CaseRunner::inputs() const {
  AttentionInputs inputs;
  inputs.q = q_.tensor();
  inputs.k = k_.tensor();
  inputs.v = v_.tensor();
  return inputs;
}

AttentionConfig CaseRunner::config() const { return config_of(case_); }

AttentionGradients CaseRunner::gradients() const {
  return {dq_.tensor(), dk_.tensor(), dv_.tensor()};
}

std::int64_t CaseRunner::extra_bytes() const {
  return static_cast<std::int64_t>(workspace_size_) + row_bytes();
}

std::int64_t CaseRunner::row_bytes() const {
  return static_cast<std::int64_t>(rows_.size() * sizeof(RowState));
}

void CaseRunner::run() { run(parallel_); }

void CaseRunner::run(Parallel& parallel) {
  if (case_.op == Op::kForward) {
    run_forward({workspace_.get(), workspace_size_}, parallel);
  } else {
    run_backward(parallel);
  }
}

void CaseRunner::run_forward(std::span<std::byte> workspace,
                             Parallel& parallel) {
  attention_forward(inputs(), config(), {o_.tensor(), rows_, stats_}, workspace,
                    parallel);
}

void CaseRunner::run_backward(Parallel& parallel) {
  attention_backward(inputs(), config(), {d_o_.tensor(), o_.tensor(), rows_},
                     gradients(), {workspace_.get(), workspace_size_},
                     parallel);
}

}  // namespace polyattn::bench
