// The public entry points: check, measure the workspace, choose the precision.
#include "polyattn/attention.h"

#include <stdexcept>
#include <string>
#include <vector>

#include "core/kernels/kernels.h"
#include "core/plan.h"
#include "core/problem.h"

namespace polyattn {
namespace {

constexpr char kForward[] = "attention_forward";
constexpr char kBackward[] = "attention_backward";

// Calls f with a value of the compute type and the strip width that goes with
// it.
template <typename F>
auto with_compute_type(const Problem& problem, F&& f) {
  return problem.compute == DType::kF64 ? f(double{}, strip_f64())
                                        : f(float{}, strip_f32());
}

// Any alignment of the caller's workspace will do.
std::size_t with_slack(const Arena& arena) {
  return arena.used() + Arena::kAlignment;
}

std::size_t forward_bytes(const Problem& problem, int workers) {
  return with_compute_type(problem, [&](auto type, int strip) {
    Arena arena(nullptr);
    const ForwardPlan plan = plan_forward(problem, strip);
    ForwardStorage<decltype(type)>(arena, problem, plan, workers);
    return with_slack(arena);
  });
}

std::size_t backward_bytes(const Problem& problem, int workers) {
  return with_compute_type(problem, [&](auto type, int strip) {
    Arena arena(nullptr);
    const BackwardPlan plan = plan_backward(problem, strip);
    BackwardStorage<decltype(type)>(arena, problem, plan, workers);
    return with_slack(arena);
  });
}

void check_workspace(const char* op, std::size_t given, std::size_t needed) {
  if (given < needed)
    throw std::invalid_argument("[" + std::string(op) + "] workspace of " +
                                std::to_string(given) + " bytes < " +
                                std::to_string(needed) + " needed");
}

}  // namespace

std::size_t attention_forward_workspace(const AttentionInputs& inputs,
                                        const AttentionConfig& config,
                                        int workers) {
  return forward_bytes(check_problem(kForward, inputs, config), workers);
}

std::size_t attention_backward_workspace(const AttentionInputs& inputs,
                                         const AttentionConfig& config,
                                         int workers) {
  return backward_bytes(check_problem(kBackward, inputs, config), workers);
}

void attention_forward(const AttentionInputs& inputs,
                       const AttentionConfig& config,
                       const AttentionResults& results,
                       std::span<std::byte> workspace, Parallel& parallel) {
  const Problem problem = check_problem(kForward, inputs, config);
  check_results(kForward, problem, results);
  check_workspace(kForward, workspace.size(),
                  forward_bytes(problem, parallel.workers()));
  const auto run = problem.compute == DType::kF64 ? forward_f64 : forward_f32;
  run(problem, results, workspace.data(), parallel);
}

void attention_backward(const AttentionInputs& inputs,
                        const AttentionConfig& config,
                        const AttentionBackwardInputs& backward,
                        const AttentionGradients& gradients,
                        std::span<std::byte> workspace, Parallel& parallel) {
  const Problem problem = check_problem(kBackward, inputs, config);
  check_backward(kBackward, problem, backward, gradients);
  check_workspace(kBackward, workspace.size(),
                  backward_bytes(problem, parallel.workers()));
  const auto run = problem.compute == DType::kF64 ? backward_f64 : backward_f32;
  run(problem, backward, gradients, workspace.data(), parallel);
}

void attention_forward(const AttentionInputs& inputs,
                       const AttentionConfig& config,
                       const AttentionResults& results) {
  DefaultParallel parallel;
  std::vector<std::byte> workspace(
      attention_forward_workspace(inputs, config, parallel.workers()));
  attention_forward(inputs, config, results, workspace, parallel);
}

void attention_backward(const AttentionInputs& inputs,
                        const AttentionConfig& config,
                        const AttentionBackwardInputs& backward,
                        const AttentionGradients& gradients) {
  DefaultParallel parallel;
  std::vector<std::byte> workspace(
      attention_backward_workspace(inputs, config, parallel.workers()));
  attention_backward(inputs, config, backward, gradients, workspace, parallel);
}

}  // namespace polyattn
