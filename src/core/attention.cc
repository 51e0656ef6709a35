// The public entry points: check, choose the path and the precision, measure
// the workspace.
#include "polyattn/attention.h"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>

#include "core/kernels/kernels.h"
#include "core/linear_dense.h"
#include "core/linear_plan.h"
#include "core/plan.h"
#include "core/planner.h"
#include "core/problem.h"
#include "core/workspace.h"

namespace polyattn {
namespace {

constexpr char kForward[] = "attention_forward";
constexpr char kBackward[] = "attention_backward";

// Calls f with a value of the compute type and the strip width that goes with
// it.
template <typename F>
auto with_compute_type(const Problem& problem, F&& f) {
  return problem.compute == DType::kF64 ? f(double{}, strip_width<double>())
                                        : f(float{}, strip_width<float>());
}

// Any alignment of the caller's workspace will do.
std::size_t with_slack(const Arena& arena) {
  return arena.used() + Arena::kAlignment;
}

std::size_t dense_bytes(const Problem& problem, Direction direction,
                        int workers) {
  return with_compute_type(problem, [&](auto type, int strip) {
    using T = decltype(type);
    Arena arena(nullptr);
    if (direction == Direction::kForward) {
      const ForwardPlan plan = plan_forward(problem, strip);
      ForwardStorage<T>(arena, problem, plan, workers);
    } else {
      const BackwardPlan plan = plan_backward(problem, strip);
      BackwardStorage<T>(arena, problem, plan, workers);
    }
    return with_slack(arena);
  });
}

std::size_t linear_bytes(const Problem& problem, Direction direction,
                         int workers) {
  return with_compute_type(problem, [&](auto type, int strip) {
    using T = decltype(type);
    const int states = direction == Direction::kForward ? 1 : 2;
    const LinearPlan plan = plan_linear(problem, strip, states);
    const std::size_t dense =
        problem.causal == Causal::kNone || problem.decays()
            ? 0
            : dense_chunk_bytes<T>(problem, plan, strip, states > 1);
    Arena arena(nullptr);
    LinearStorage<T>(arena, problem, plan, states, dense, workers);
    return with_slack(arena);
  });
}

// A linear call may end on the dense path: if it was not asked for by name, and
// forward if it wants statistics.
std::size_t bytes_of(const Problem& problem, Path path, Direction direction,
                     int workers) {
  if (path == Path::kDense) return dense_bytes(problem, direction, workers);
  const std::size_t linear = linear_bytes(problem, direction, workers);
  if (problem.decays()) return linear;
  return problem.path == Path::kLinear && direction == Direction::kBackward
             ? linear
             : std::max(linear, dense_bytes(problem, direction, workers));
}

// What to do with a linear call that gave inf or NaN: true for the dense path.
// Inputs that are not finite give such results on any path, and the dense one
// would only take longer.
bool goes_dense(const char* op, const Problem& p,
                const AttentionBackwardInputs* back = nullptr) {
  const bool sum = p.activation.divisor == Divisor::kSum;
  const bool given = back == nullptr ||
                     (all_finite(back->d_o) && (!sum || all_finite(back->o)));
  if (!given || !all_finite(p.in.q) || !all_finite(p.in.k) ||
      !all_finite(p.in.v))
    return false;
  if (p.decays())
    throw std::overflow_error(
        "[" + std::string(op) + "] features of " + p.activation.to_string() +
        " overflow " + name_of(p.compute) +
        ", and with decay there is no dense path; compute in f64, or make q "
        "and k smaller");
  if (p.path == Path::kLinear)
    throw std::overflow_error(
        "[" + std::string(op) + "] features of " + p.activation.to_string() +
        " overflow " + name_of(p.compute) +
        " on the linear path; take the dense path, compute in f64, or make q "
        "and k smaller");
  return true;
}

// Checks and plans once; `workspace` gives the memory when its size is known.
template <typename GetWorkspace>
Path forward_with(const AttentionInputs& inputs, const AttentionConfig& config,
                  const AttentionResults& results, Parallel& parallel,
                  const GetWorkspace& workspace) {
  const Problem problem = check_problem(kForward, inputs, config);
  check_results(kForward, problem, results);
  if (problem.decays() && !results.stats.empty())
    throw std::invalid_argument(
        "[" + std::string(kForward) +
        "] log_decay together with stats; attention_norms gives the norms");
  const Path path = choose_path(kForward, problem, Direction::kForward);
  std::byte* memory = workspace(
      bytes_of(problem, path, Direction::kForward, parallel.workers()));
  const bool wide = problem.compute == DType::kF64;
  if (path == Path::kLinear && results.stats.empty()) {
    const auto run = wide ? linear_forward<double> : linear_forward<float>;
    if (run(problem, results, memory, parallel) == 0 ||
        !goes_dense(kForward, problem))
      return Path::kLinear;
  }
  const auto run = wide ? dense_forward<double> : dense_forward<float>;
  run(problem, results, memory, parallel);
  return Path::kDense;
}

template <typename GetWorkspace>
Path backward_with(const AttentionInputs& inputs, const AttentionConfig& config,
                   const AttentionBackwardInputs& backward,
                   const AttentionGradients& gradients, Parallel& parallel,
                   const GetWorkspace& workspace) {
  Problem problem = check_problem(kBackward, inputs, config);
  check_backward(kBackward, problem, backward, gradients);
  problem.d_bias = gradients.d_bias.has_value();
  const Path path = choose_path(kBackward, problem, Direction::kBackward);
  std::byte* memory = workspace(
      bytes_of(problem, path, Direction::kBackward, parallel.workers()));
  const bool wide = problem.compute == DType::kF64;
  if (path == Path::kLinear) {
    const auto run = wide ? linear_backward<double> : linear_backward<float>;
    if (run(problem, backward, gradients, memory, parallel) == 0 ||
        !goes_dense(kBackward, problem, &backward))
      return Path::kLinear;
  }
  const auto run = wide ? dense_backward<double> : dense_backward<float>;
  run(problem, backward, gradients, memory, parallel);
  return Path::kDense;
}

}  // namespace

const char* name_of(Causal causal) {
  if (causal == Causal::kNone) return "none";
  return causal == Causal::kFirst ? "first" : "last";
}

const char* name_of(Path path) {
  if (path == Path::kAuto) return "auto";
  return path == Path::kDense ? "dense" : "linear";
}

std::size_t attention_forward_workspace(const AttentionInputs& inputs,
                                        const AttentionConfig& config,
                                        int workers) {
  const Problem problem = check_problem(kForward, inputs, config);
  const Path path = choose_path(kForward, problem, Direction::kForward);
  return bytes_of(problem, path, Direction::kForward, workers);
}

std::size_t attention_backward_workspace(const AttentionInputs& inputs,
                                         const AttentionConfig& config,
                                         int workers, bool d_bias) {
  Problem problem = check_problem(kBackward, inputs, config);
  problem.d_bias = d_bias && inputs.bias;
  const Path path = choose_path(kBackward, problem, Direction::kBackward);
  return bytes_of(problem, path, Direction::kBackward, workers);
}

Path attention_forward(const AttentionInputs& inputs,
                       const AttentionConfig& config,
                       const AttentionResults& results,
                       std::span<std::byte> workspace, Parallel& parallel) {
  return forward_with(inputs, config, results, parallel,
                      given(kForward, workspace));
}

Path attention_backward(const AttentionInputs& inputs,
                        const AttentionConfig& config,
                        const AttentionBackwardInputs& backward,
                        const AttentionGradients& gradients,
                        std::span<std::byte> workspace, Parallel& parallel) {
  return backward_with(inputs, config, backward, gradients, parallel,
                       given(kBackward, workspace));
}

Path attention_forward(const AttentionInputs& inputs,
                       const AttentionConfig& config,
                       const AttentionResults& results, Parallel& parallel) {
  std::optional<Workspace> own;
  return forward_with(inputs, config, results, parallel, owned(own));
}

Path attention_backward(const AttentionInputs& inputs,
                        const AttentionConfig& config,
                        const AttentionBackwardInputs& backward,
                        const AttentionGradients& gradients,
                        Parallel& parallel) {
  std::optional<Workspace> own;
  return backward_with(inputs, config, backward, gradients, parallel,
                       owned(own));
}

Path attention_forward(const AttentionInputs& inputs,
                       const AttentionConfig& config,
                       const AttentionResults& results) {
  DefaultParallel parallel;
  return attention_forward(inputs, config, results, parallel);
}

Path attention_backward(const AttentionInputs& inputs,
                        const AttentionConfig& config,
                        const AttentionBackwardInputs& backward,
                        const AttentionGradients& gradients) {
  DefaultParallel parallel;
  return attention_backward(inputs, config, backward, gradients, parallel);
}

}  // namespace polyattn
