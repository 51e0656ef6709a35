// The public entry points of polyattn/double_backward.h: check, plan, get the
// workspace.
#include "polyattn/double_backward.h"

#include <optional>

#include "core/double_plan.h"
#include "core/kernels/kernels.h"
#include "core/problem.h"
#include "core/workspace.h"

namespace polyattn {
namespace {

constexpr char kOp[] = "attention_double_backward";

template <typename T>
std::size_t bytes_of(const Problem& problem,
                     const AttentionDoubleInputs& second, int workers) {
  const DoublePlan plan = plan_double(problem, second, strip_width<T>());
  Arena arena(nullptr);
  const DoubleStorage<T> storage(arena, problem, plan, workers);
  return arena.used() + Arena::kAlignment;
}

std::size_t bytes_for(const Problem& problem,
                      const AttentionDoubleInputs& second, int workers) {
  return problem.compute == DType::kF64
             ? bytes_of<double>(problem, second, workers)
             : bytes_of<float>(problem, second, workers);
}

Problem check(const AttentionInputs& inputs, const AttentionConfig& config,
              const AttentionDoubleInputs& second,
              const AttentionDoubleGradients& gradients) {
  Problem problem = check_problem(kOp, inputs, config);
  check_double_backward(kOp, problem, second, gradients);
  problem.d_bias = gradients.d_bias.has_value();
  return problem;
}

template <typename GetWorkspace>
void run(const AttentionInputs& inputs, const AttentionConfig& config,
         const AttentionDoubleInputs& second,
         const AttentionDoubleGradients& gradients, Parallel& parallel,
         const GetWorkspace& workspace) {
  const Problem problem = check(inputs, config, second, gradients);
  std::byte* memory = workspace(bytes_for(problem, second, parallel.workers()));
  const auto kernel = problem.compute == DType::kF64
                          ? dense_double_backward<double>
                          : dense_double_backward<float>;
  kernel(problem, second, gradients, memory, parallel);
}

}  // namespace

std::size_t attention_double_backward_workspace(
    const AttentionInputs& inputs, const AttentionConfig& config,
    const AttentionDoubleInputs& second,
    const AttentionDoubleGradients& gradients, int workers) {
  return bytes_for(check(inputs, config, second, gradients), second, workers);
}

void attention_double_backward(const AttentionInputs& inputs,
                               const AttentionConfig& config,
                               const AttentionDoubleInputs& second,
                               const AttentionDoubleGradients& gradients,
                               std::span<std::byte> workspace,
                               Parallel& parallel) {
  run(inputs, config, second, gradients, parallel, given(kOp, workspace));
}

void attention_double_backward(const AttentionInputs& inputs,
                               const AttentionConfig& config,
                               const AttentionDoubleInputs& second,
                               const AttentionDoubleGradients& gradients,
                               Parallel& parallel) {
  std::optional<Workspace> own;
  run(inputs, config, second, gradients, parallel, owned(own));
}

}  // namespace polyattn
