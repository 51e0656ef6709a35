#include "bench/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "polyattn/reference.h"

namespace polyattn::bench {
namespace {

// Roughly sqrt of the additions in a row times the rounding of the type. This
// is to catch wrong code; the tests are the place for tight bounds.
double tolerance(const BenchCase& c) {
  const double additions = static_cast<double>(c.m + c.d);
  switch (c.dtype) {
    case DType::kF32:
      return 1e-6 * std::sqrt(additions);
    case DType::kBF16:
      return 0x1p-8;
    case DType::kF16:
      return 0x1p-11 + 1e-6 * std::sqrt(additions);
    case DType::kF64:
      return 1e-15 * std::sqrt(additions);
  }
  return 0;
}

// The last `rows` rows of one head as a tensor of their own.
ConstTensor tail(ConstTensor t, std::int64_t head, std::int64_t rows) {
  const std::int64_t skip = head * t.stride[1] + (t.size[0] - 1) * t.stride[0] +
                            (t.size[2] - rows) * t.stride[2];
  t.data = static_cast<const std::byte*>(t.data) +
           skip * static_cast<std::int64_t>(size_of(t.dtype));
  t.size = {1, 1, rows, t.size[3]};
  return t;
}

void compare(const BenchCase& c, const ConstTensor& got,
             const std::vector<double>& want) {
  const double scale = std::abs(*std::max_element(
      want.begin(), want.end(),
      [](double a, double b) { return std::abs(a) < std::abs(b); }));
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double value =
        load_element(got.data, got.dtype, static_cast<std::int64_t>(i));
    if (std::abs(value - want[i]) <= 4 * tolerance(c) * scale) continue;
    throw std::runtime_error(
        fmt::format("[bench] {}: wrong result, {} where the reference has {} "
                    "(largest in its rows {}); not measured",
                    describe(c), value, want[i], scale));
  }
}

// The rows of q seen as a shorter problem: the last query then stays aligned
// with the key that it was aligned with.
struct Slice {
  AttentionInputs inputs;
  AttentionConfig config;
};

Slice slice_of(const CaseRunner& runner, std::int64_t head, std::int64_t rows) {
  const BenchCase& c = runner.bench_case();
  Slice slice{runner.inputs(), runner.config()};
  // Keys that the last row sees; beyond them nothing is seen by any row.
  const std::int64_t seen =
      c.causal == Causal::kFirst ? std::min(c.n, c.m) : c.m;
  if (c.causal != Causal::kNone) slice.config.causal = Causal::kLast;
  const std::int64_t kv_head = head / (c.h / c.g);
  slice.inputs.q = tail(slice.inputs.q, head, rows);
  slice.inputs.k = tail(slice.inputs.k, kv_head, c.m);
  slice.inputs.v = tail(slice.inputs.v, kv_head, c.m);
  slice.inputs.k.size[2] = slice.inputs.v.size[2] = seen;
  return slice;
}

void check_head(const CaseRunner& runner, std::int64_t head) {
  const BenchCase& c = runner.bench_case();
  // First-aligned rows beyond the last key see all keys: one row is exact.
  const bool overhang = c.causal == Causal::kFirst && c.n > c.m;
  const std::int64_t rows = overhang ? 1 : std::min<std::int64_t>(4, c.n);
  const Slice slice = slice_of(runner, head, rows);
  if (c.op == Op::kForward) {
    std::vector<double> o(rows * c.e);
    reference_forward(slice.inputs, slice.config,
                      {view(o.data(), {1, 1, rows, c.e}), {}, {}});
    compare(c, tail(runner.o(), head, rows), o);
  } else {
    std::vector<double> dq(rows * c.d);
    AttentionGradients gradients;
    gradients.dq = view(dq.data(), {1, 1, rows, c.d});
    reference_backward(slice.inputs, slice.config,
                       tail(runner.d_o(), head, rows), gradients);
    compare(c, tail(*runner.gradients().dq, head, rows), dq);
  }
}

}  // namespace

void check_against_reference(const CaseRunner& runner) {
  check_head(runner, 0);
  check_head(runner, runner.bench_case().h - 1);
}

}  // namespace polyattn::bench
