// What the two paths cost on this machine: a few small calls of each, from
// whose times the costs of a linear model follow.
#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "core/features.h"
#include "core/planner.h"
#include "core/problem.h"
#include "polyattn/plan.h"

namespace polyattn {
namespace {

struct Shape {
  std::int64_t n, d, e;
  const char* formula;
  Causal causal = Causal::kNone;
};

// One head of random numbers, forward and backward on one worker.
class Probe {
 public:
  Probe(const Shape& shape, Path path)
      : q_(fill(shape.n * shape.d)),
        k_(fill(shape.n * shape.d)),
        v_(fill(shape.n * shape.e)),
        d_o_(fill(shape.n * shape.e)),
        o_(v_),
        dq_(q_),
        dk_(k_),
        dv_(v_),
        rows_(static_cast<std::size_t>(shape.n)),
        narrow_{1, 1, shape.n, shape.d},
        wide_{1, 1, shape.n, shape.e} {
    in_.q = view(std::as_const(q_).data(), narrow_);
    in_.k = view(std::as_const(k_).data(), narrow_);
    in_.v = view(std::as_const(v_).data(), wide_);
    config_.activation = Activation::parse(shape.formula);
    config_.causal = shape.causal;
    config_.path = path;
    forward_.resize(attention_forward_workspace(in_, config_, 1));
    backward_.resize(attention_backward_workspace(in_, config_, 1));
  }

  Problem problem() const { return check_problem("plan", in_, config_); }

  // Nanoseconds, the least of a few.
  double forward() {
    const AttentionResults results{view(o_.data(), wide_), rows_};
    return least(
        [&] { attention_forward(in_, config_, results, forward_, serial_); });
  }
  double backward() {
    const AttentionBackwardInputs in{view(std::as_const(d_o_).data(), wide_),
                                     view(std::as_const(o_).data(), wide_),
                                     rows_};
    const AttentionGradients out{view(dq_.data(), narrow_),
                                 view(dk_.data(), narrow_),
                                 view(dv_.data(), wide_)};
    return least(
        [&] { attention_backward(in_, config_, in, out, backward_, serial_); });
  }

 private:
  static std::vector<float> fill(std::int64_t count) {
    std::vector<float> values(static_cast<std::size_t>(count));
    std::uint32_t state = 1;
    for (float& x : values) {
      state = state * 1664525U + 1013904223U;
      x = static_cast<float>(state >> 8) * 0x1p-23F - 1;
    }
    return values;
  }

  template <typename F>
  static double least(F&& f) {
    constexpr int kRepeats = 7;
    f();
    double best = std::numeric_limits<double>::infinity();
    for (int i = 0; i < kRepeats; ++i) {
      const auto start = std::chrono::steady_clock::now();
      f();
      const std::chrono::duration<double, std::nano> time =
          std::chrono::steady_clock::now() - start;
      best = std::min(best, time.count());
    }
    return best;
  }

  std::vector<float> q_, k_, v_, d_o_, o_, dq_, dk_, dv_;
  std::vector<RowState> rows_;
  Extents narrow_, wide_;
  AttentionInputs in_;
  AttentionConfig config_;
  std::vector<std::byte> forward_, backward_;
  SerialParallel serial_;
};

struct Times {
  double forward, backward;
};

// To three digits: the others are noise.
double rounded(double x) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), x,
                                 std::chars_format::general, 3);
  std::from_chars(text.data(), end.ptr, x);
  return x;
}

// What a causal call of the linear path takes beside what is known, by token.
void set_step(PathCosts& costs) {
  constexpr Shape kShape = {288, 16, 16, "x", Causal::kFirst};
  Probe probe(kShape, Path::kLinear);
  const double tokens = 2 * static_cast<double>(kShape.n);
  const Problem p = probe.problem();
  const auto rest = [&](double time, Direction direction, PathCost& cost) {
    cost.step = 0;
    const double known = 1e9 * predict_linear(p, direction, cost);
    cost.step = rounded(std::max(time - known, 0.0) / tokens);
  };
  rest(probe.forward(), Direction::kForward, costs.forward);
  rest(probe.backward(), Direction::kBackward, costs.backward);
}

Times time_of(const Shape& shape, Path path) {
  Probe probe(shape, path);
  const double forward = probe.forward();  // backward needs its rows
  return {forward, probe.backward()};
}

// The solution x of a x = b; a cost below zero, which noise may give, becomes
// zero.
template <std::size_t kCount>
std::array<double, kCount> solve(
    std::array<std::array<double, kCount>, kCount> a,
    std::array<double, kCount> b) {
  for (std::size_t i = 0; i < kCount; ++i) {
    std::size_t top = i;
    for (std::size_t r = i; r < kCount; ++r)
      if (std::abs(a[r][i]) > std::abs(a[top][i])) top = r;
    std::swap(a[i], a[top]);
    std::swap(b[i], b[top]);
    for (std::size_t r = 0; r < kCount; ++r) {
      if (r == i) continue;
      const double factor = a[r][i] / a[i][i];
      for (std::size_t c = i; c < kCount; ++c) a[r][c] -= factor * a[i][c];
      b[r] -= factor * b[i];
    }
  }
  std::array<double, kCount> x{};
  for (std::size_t i = 0; i < kCount; ++i)
    x[i] = rounded(std::max(b[i] / a[i][i], 0.0));
  return x;
}

void set_dense(PathCost& cost, const std::array<double, 3>& x) {
  cost.row = x[0], cost.pair = x[1], cost.pair_width = x[2];
}
void set_linear(PathCost& cost, const std::array<double, 4>& x) {
  cost.head = x[0], cost.token = x[1];
  cost.feature = x[2], cost.feature_width = x[3];
}

}  // namespace

PathCosts measure_path_costs() {
  constexpr std::array<Shape, 3> kDense = {
      {{160, 16, 16, "x^2"}, {160, 64, 64, "x^2"}, {384, 32, 32, "x^2"}}};
  constexpr std::array<Shape, 4> kLinear = {{{48, 16, 16, "x"},
                                             {384, 64, 64, "x"},
                                             {384, 16, 16, "x^2"},
                                             {192, 32, 64, "x^2"}}};
  std::array<std::array<double, 3>, 3> dense{};
  std::array<std::array<double, 4>, 4> linear{};
  std::array<double, 3> dense_f{}, dense_b{};
  std::array<double, 4> linear_f{}, linear_b{};
  for (std::size_t i = 0; i < 3; ++i) {
    const auto n = static_cast<double>(kDense[i].n);
    const auto widths = static_cast<double>(kDense[i].d + kDense[i].e);
    dense[i] = {2 * n * widths, n * n, n * n * widths};
    const Times time = time_of(kDense[i], Path::kDense);
    dense_f[i] = time.forward, dense_b[i] = time.backward;
  }
  for (std::size_t i = 0; i < 4; ++i) {
    const Shape& s = kLinear[i];
    const double tokens = 2 * static_cast<double>(s.n);
    const double features = tokens * static_cast<double>(count_features(
                                         Activation::parse(s.formula), s.d));
    linear[i] = {1, tokens * static_cast<double>(s.d + s.e), features,
                 features * static_cast<double>(s.e)};
    const Times time = time_of(s, Path::kLinear);
    linear_f[i] = time.forward, linear_b[i] = time.backward;
  }
  PathCosts costs;
  set_dense(costs.forward, solve(dense, dense_f));
  set_dense(costs.backward, solve(dense, dense_b));
  set_linear(costs.forward, solve(linear, linear_f));
  set_linear(costs.backward, solve(linear, linear_b));
  set_step(costs);
  return costs;
}

}  // namespace polyattn
