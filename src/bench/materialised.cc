#include "bench/materialised.h"

#include <algorithm>
#include <cmath>

#include "bench/materialised_rows.h"
#include "bench/sgemm.h"

namespace polyattn::bench {
namespace {

// Beyond this the matrix does not fit in the memory of ordinary machines.
constexpr double kMaxMatrixBytes = 2e9;

double matrix_bytes(const BenchCase& c) {
  const double head = 4.0 * static_cast<double>(c.n) * static_cast<double>(c.m);
  const double scratch = head * c.threads;
  if (c.op == Op::kForward) return scratch;
  return scratch + 2 * head * static_cast<double>(c.b * c.h);
}

const float* floats(const ConstTensor& tensor, std::int64_t b, std::int64_t h) {
  return static_cast<const float*>(tensor.data) + b * tensor.stride[0] +
         h * tensor.stride[1];
}

float* floats(const Array& array, std::int64_t head, std::int64_t rows,
              std::int64_t width) {
  return static_cast<float*>(array.data()) + head * rows * width;
}

}  // namespace

bool Materialised::can_do(const BenchCase& c) {
  return have_sgemm() && c.dtype == DType::kF32 && !c.stats &&
         c.path == Path::kDense && materialised_supports(c.activation) &&
         matrix_bytes(c) <= kMaxMatrixBytes &&
         (c.op == Op::kForward || c.g == c.h);
}

Materialised::Materialised(const CaseRunner& runner)
    : runner_(&runner),
      case_(runner.bench_case()),
      scale_(static_cast<float>(1 / std::sqrt(static_cast<double>(case_.d)))),
      heads_in_parallel_(case_.b * case_.h >= std::int64_t{2} * case_.threads),
      parallel_(case_.threads),
      o_(DType::kF32, {case_.b, case_.h, case_.n, case_.e}) {
  const BenchCase& c = case_;
  const std::int64_t matrix = c.n * c.m;
  scratch_.resize(matrix * (heads_in_parallel_ ? parallel_.workers() : 1));
  if (c.op == Op::kForward) return;
  dq_ = Array(c.dtype, {c.b, c.h, c.n, c.d});
  dk_ = Array(c.dtype, {c.b, c.g, c.m, c.d});
  dv_ = Array(c.dtype, {c.b, c.g, c.m, c.e});
  scores_.resize(matrix * c.b * c.h);
  weights_.resize(matrix * c.b * c.h);
  set_sgemm_threads(1);
  for (std::int64_t i = 0; i < c.b * c.h; ++i) {
    float* scores = scores_.data() + i * matrix;
    compute_scores(head(i), scores);
    for (std::int64_t row = 0; row < c.n; ++row) {
      materialised_weights(c.activation, seen(row), c.m, scores + row * c.m,
                           weights_.data() + i * matrix + row * c.m);
    }
  }
}

Materialised::Head Materialised::head(std::int64_t index) const {
  const AttentionInputs inputs = runner_->inputs();
  const std::int64_t b = index / case_.h, h = index % case_.h;
  const std::int64_t g = h / (case_.h / case_.g);
  return {floats(inputs.q, b, h), floats(inputs.k, b, g),
          floats(inputs.v, b, g), index};
}

template <typename Body>
void Materialised::for_heads(const Body& body) {
  const std::int64_t heads = case_.b * case_.h;
  set_sgemm_threads(heads_in_parallel_ ? 1 : case_.threads);
  if (heads_in_parallel_) {
    parallel_.run(heads, body);
  } else {
    for (std::int64_t i = 0; i < heads; ++i) body(i, 0);
  }
}

template <typename Body>
void Materialised::for_rows(const Body& body) {
  if (heads_in_parallel_) {
    for (std::int64_t row = 0; row < case_.n; ++row) body(row);
    return;
  }
  constexpr std::int64_t kBlock = 64;
  parallel_.run((case_.n + kBlock - 1) / kBlock, [&](std::int64_t block, int) {
    const std::int64_t end = std::min(case_.n, (block + 1) * kBlock);
    for (std::int64_t row = block * kBlock; row < end; ++row) body(row);
  });
}

std::int64_t Materialised::seen(std::int64_t row) const {
  if (case_.causal == Causal::kNone) return case_.m;
  const std::int64_t shift =
      case_.causal == Causal::kLast ? case_.m - case_.n : 0;
  return std::clamp<std::int64_t>(row + 1 + shift, 0, case_.m);
}

void Materialised::run() {
  for_heads([&](std::int64_t index, int worker) {
    float* scratch = scratch_.data() + worker * case_.n * case_.m;
    if (case_.op == Op::kForward) {
      forward(head(index), scratch);
    } else {
      backward(head(index), scratch);
    }
  });
}

void Materialised::compute_scores(const Head& head, float* scores) const {
  const BenchCase& c = case_;
  const Matrix q{head.q, c.n, c.d}, k{head.k, c.m, c.d};
  sgemm(q, transpose(k), scores, scale_);
}

void Materialised::forward(const Head& head, float* scores) {
  const BenchCase& c = case_;
  compute_scores(head, scores);
  for_rows([&](std::int64_t row) {
    float* line = scores + row * c.m;
    materialised_weights(c.activation, seen(row), c.m, line, line);
  });
  const Matrix weights{scores, c.n, c.m}, v{head.v, c.m, c.e};
  sgemm(weights, v, floats(o_, head.index, c.n, c.e));
}

void Materialised::backward(const Head& head, float* gradient) {
  const BenchCase& c = case_;
  const std::int64_t offset = head.index * c.n * c.m;
  const float* scores = scores_.data() + offset;
  const Matrix q{head.q, c.n, c.d}, k{head.k, c.m, c.d}, v{head.v, c.m, c.e};
  const Matrix weights{weights_.data() + offset, c.n, c.m};
  const Matrix ds{gradient, c.n, c.m};
  const Matrix d_o{floats(runner_->d_o(), head.index / c.h, head.index % c.h),
                   c.n, c.e};
  sgemm(transpose(weights), d_o, floats(dv_, head.index, c.m, c.e));
  sgemm(d_o, transpose(v), gradient);
  for_rows([&](std::int64_t row) {
    const std::int64_t line = row * c.m;
    materialised_score_gradient(c.activation, seen(row), c.m, scores + line,
                                weights.data + line, gradient + line);
  });
  sgemm(ds, k, floats(dq_, head.index, c.n, c.d), scale_);
  sgemm(transpose(ds), q, floats(dk_, head.index, c.m, c.d), scale_);
}

}  // namespace polyattn::bench
