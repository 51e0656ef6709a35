// What the tests of the kernels run: calls, targets, and the cases that between
// them cover everything.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "core/random_inputs.h"
#include "polyattn/attention.h"
#include "polyattn/parallel.h"
#include "polyattn/target.h"

namespace polyattn::test {

// Forward, and backward with what forward gave, on the calling thread.
inline void run_forward(const Instance& instance,
                        const AttentionResults& results, Parallel& parallel) {
  std::vector<std::byte> workspace(attention_forward_workspace(
      instance.inputs(), instance.config(), parallel.workers()));
  attention_forward(instance.inputs(), instance.config(), results, workspace,
                    parallel);
}

inline void run_backward(const Instance& instance, const Outputs& forward,
                         const AttentionGradients& gradients,
                         Parallel& parallel) {
  std::vector<std::byte> workspace(attention_backward_workspace(
      instance.inputs(), instance.config(), parallel.workers(),
      gradients.d_bias.has_value()));
  attention_backward(instance.inputs(), instance.config(),
                     forward.backward_inputs(instance.d_o.tensor), gradients,
                     workspace, parallel);
}

inline Outputs run_kernels(const Instance& instance, DType storage,
                           Parallel& parallel) {
  Outputs out = instance.outputs(storage);
  run_forward(instance, out.results(), parallel);
  run_backward(instance, out, out.gradients(), parallel);
  return out;
}

inline Outputs run_kernels(const Instance& instance, DType storage) {
  SerialParallel serial;
  return run_kernels(instance, storage, serial);
}

// POLYATTN_TEST_LIGHT=1, which the sanitizer stages set, asks for fewer shapes.
inline bool light() {
  const char* wanted = std::getenv("POLYATTN_TEST_LIGHT");
  return wanted != nullptr && std::string_view(wanted) == "1";
}

// Calls body(name) with each of these targets in use, then goes back.
template <typename Body>
void for_each_target(const std::vector<std::string>& names, const Body& body) {
  struct Restore {
    ~Restore() { force_target(""); }
  } restore;
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    force_target(name);
    body(name);
  }
}

inline constexpr int kFormulaCount = 16;
inline const std::string kFormulas[kFormulaCount] = {
    "softmax",
    "x/sqrt(N)",
    "x^2/sqrt(N)",
    "x^3/sqrt(N)",
    "x^3/14",
    "x^4/sum",
    "x^3/sum",
    "1 + x + x^2/2",
    "(1 + x)^2/sqrt(N)",
    "(1 - x + x^2/3 - x^3/7 + x^5/50 - x^8/900)/N",
    "sigmoid",
    "sigmoid(x)",
    "sigmoid/sum",
    "relu/N",
    "relu^2/N",
    "relu^3/sum"};

// A suite with a case for each of them.
class EveryFormula : public ::testing::TestWithParam<int> {
 protected:
  std::string formula() const { return kFormulas[GetParam()]; }
};

struct Types {
  DType dtype, compute;
};
inline constexpr Types kTypes[] = {
    {DType::kF32, DType::kF32}, {DType::kBF16, DType::kF64},
    {DType::kF64, DType::kF64}, {DType::kF16, DType::kF32},
    {DType::kF32, DType::kF64}, {DType::kBF16, DType::kF32},
    {DType::kF64, DType::kF32}, {DType::kF16, DType::kF64}};

inline constexpr int kStructures = 10;

// Small sizes around the strips of all targets, taken in turn.
Case small_case(int turn);

// Lengths 0, 1, 63, 97, 1000, 1025 with each other, and widths 1, 16, 59, 64,
// 111, 128: a share of the grid for each formula, such that the shares together
// make the whole and every formula meets a long sequence. Structures and types
// are taken in turn.
std::vector<Case> awkward_cases(int formula);

// Targets for this case: the slowest is spared the large ones.
std::vector<std::string> targets_for(const Case& c);

// Makes the case one of the ten structures: all keys, causal both ways, masked,
// biased, grouped, ragged, and mixtures. `turn` chooses how an extra is
// repeated.
Case with_structure(Case c, int structure, int turn);

// Every structure with every type, of this formula.
std::vector<Case> structure_cases(int formula);

// Few values, exact in every type, so that the largest scores are well apart.
void take_few_values(Instance& instance);

}  // namespace polyattn::test
