#include "torch/autograd_double.h"

#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <array>
#include <vector>

#include "torch/composed.h"
#include "torch/saved_call.h"

namespace polyattn {
namespace {

using OptionalTensor = c10::optional<at::Tensor>;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Where a SecondCall is saved, behind the tensors of its call.
constexpr std::size_t kDo = kCallTensors, kRows = kDo + 1,
                      kCotangents = kRows + 1,
                      kSaved = kCotangents + kCallTensors;

// What the kernel differentiates by: d_o, and these tensors of the call.
constexpr std::array<std::size_t, 4> kBy = {kQ, kK, kV, kBias};

variable_list to_saved(const SecondCall& second) {
  variable_list saved = tensors_of(second.call);
  saved.insert(saved.end(), {second.d_o, second.rows});
  saved.insert(saved.end(), second.cotangents.begin(), second.cotangents.end());
  return saved;
}

// The definition's, as a function of the tensors that `by` names by their
// places: a place of saved_call.h, or kDo. Where no cotangent leads anywhere,
// undefined.
variable_list composed_second(const Call& call, variable_list& saved,
                              const std::vector<std::size_t>& by, bool graph) {
  variable_list first_by, weights, second_by;
  for (std::size_t i = 0; i < kCallTensors; ++i) {
    if (!saved[kCotangents + i].defined()) continue;
    first_by.push_back(saved[i]);
    weights.push_back(saved[kCotangents + i]);
  }
  for (const std::size_t i : by) second_by.push_back(saved[i]);
  if (first_by.empty()) return variable_list(by.size());
  const variable_list first = torch::autograd::grad(
      {composed_attention(call)}, first_by, {saved[kDo]}, /*retain_graph=*/true,
      /*create_graph=*/true, /*allow_unused=*/true);
  return gradients_by(first, weights, second_by, graph);
}

// Stand-ins for all of them; what there are cotangents of is differentiated by
// in any case. d_o is zero where there is none.
Call stand_ins(const SecondCall& second, bool connected, variable_list& saved) {
  saved = to_saved(second);
  if (!saved[kDo].defined())
    saved[kDo] = at::zeros({second.call.q.size(0), second.call.q.size(1),
                            second.call.q.size(2), second.call.v.size(3)},
                           second.call.q.options())
                     .requires_grad_(true);
  for (std::size_t i = 0; i < saved.size(); ++i) {
    const bool has_cotangent =
        i < kCallTensors && saved[kCotangents + i].defined();
    saved[i] = has_cotangent && !saved[i].requires_grad()
                   ? saved[i].detach().requires_grad_(true)
                   : stand_in(saved[i], connected);
  }
  Call call = second.call;
  call.q = saved[kQ], call.k = saved[kK], call.v = saved[kV];
  call.mask = saved[kMask], call.bias = saved[kBias];
  call.coefficients = saved[kCoefficients];
  call.log_decay = saved[kLogDecay];
  return call;
}

class FusedDouble : public torch::autograd::Function<FusedDouble> {
 public:
  // d_o, the tensors of kBy and their cotangents are arguments because torch
  // looks for those that want gradients among the arguments.
  static variable_list forward(
      AutogradContext* ctx, const OptionalTensor& /*d_o*/,
      const at::Tensor& /*q*/, const at::Tensor& /*k*/, const at::Tensor& /*v*/,
      const OptionalTensor& /*bias*/, const OptionalTensor& /*uq*/,
      const OptionalTensor& /*uk*/, const OptionalTensor& /*uv*/,
      const OptionalTensor& /*u_bias*/, const SecondCall& second,
      SecondWanted wanted) {
    const at::AutoDispatchBelowADInplaceOrView below;
    ctx->set_materialize_grads(false);
    save_config(ctx, second.call);
    ctx->save_for_backward(to_saved(second));
    const SecondGradients gradients = double_on_cpu(second, wanted);
    std::vector<std::int64_t> places;
    variable_list result;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (!wanted[i]) continue;
      places.push_back(static_cast<std::int64_t>(i == 0 ? kDo : kBy[i - 1]));
      result.push_back(gradients[i]);
    }
    ctx->saved_data["places"] = places;
    return result;
  }

  static variable_list backward(AutogradContext* ctx,
                                const variable_list& outer) {
    const bool connected = at::GradMode::is_enabled();
    const at::AutoGradMode graph(true);
    const variable_list unpacked = ctx->get_saved_variables();
    const SecondCall second = {
        restore(ctx, unpacked),
        unpacked[kDo],
        unpacked[kRows],
        {unpacked.begin() + kCotangents, unpacked.end()}};
    variable_list saved;
    const Call call = stand_ins(second, connected, saved);
    std::vector<std::size_t> by;
    for (const std::int64_t place : ctx->saved_data["places"].toIntVector())
      by.push_back(static_cast<std::size_t>(place));
    const variable_list gradients =
        composed_second(call, saved, by, /*graph=*/true);
    return third(gradients, outer, unpacked, saved, connected);
  }

 private:
  static constexpr std::size_t kArguments = 11;

  // In the order of forward's arguments.
  static variable_list third(const variable_list& gradients,
                             const variable_list& outer,
                             const variable_list& unpacked,
                             const variable_list& saved, bool connected) {
    std::vector<std::size_t> arguments = {kDo};
    arguments.insert(arguments.end(), kBy.begin(), kBy.end());
    for (const std::size_t i : kBy) arguments.push_back(kCotangents + i);
    variable_list by;
    for (const std::size_t i : arguments)
      if (unpacked[i].defined() && unpacked[i].requires_grad())
        by.push_back(saved[i]);
    const variable_list found = gradients_by(gradients, outer, by, connected);
    variable_list result(kArguments);
    auto next = found.begin();
    for (std::size_t x = 0; x < arguments.size(); ++x) {
      const at::Tensor& t = unpacked[arguments[x]];
      if (t.defined() && t.requires_grad()) result[x] = *next++;
    }
    return result;
  }
};

variable_list run_fused(const SecondCall& second, SecondWanted wanted) {
  const Call& call = second.call;
  const variable_list& u = second.cotangents;
  return FusedDouble::apply(if_defined(second.d_o), call.q, call.k, call.v,
                            if_defined(call.bias), if_defined(u[kQ]),
                            if_defined(u[kK]), if_defined(u[kV]),
                            if_defined(u[kBias]), second, wanted);
}

// Without the kernel, in one go.
variable_list composed(const SecondCall& second,
                       const std::vector<std::size_t>& by) {
  const bool connected = at::GradMode::is_enabled();
  const at::AutoGradMode graph(true);
  variable_list saved;
  const Call call = stand_ins(second, connected, saved);
  return composed_second(call, saved, by, connected);
}

// The kernel knows no derivatives by coefficients, and no decay.
bool has_kernel(const SecondCall& second) {
  const at::Tensor& c = second.call.coefficients;
  return second.rows.defined() && is_plain(second) &&
         !second.cotangents[kCoefficients].defined() &&
         !(c.defined() && c.requires_grad()) &&
         !second.call.log_decay.defined();
}

}  // namespace

variable_list double_gradients(const SecondCall& second) {
  variable_list result(1 + kCallTensors);
  const auto wants = [](const at::Tensor& t) {
    return t.defined() && t.requires_grad();
  };
  // d_o is the first of the results, and the others follow.
  const auto place = [](std::size_t i) { return i == kDo ? 0 : i + 1; };
  std::vector<std::size_t> by;
  const variable_list given = to_saved(second);
  for (std::size_t i = 0; i <= kDo; ++i)
    if (wants(given[i])) by.push_back(i);
  if (by.empty()) return result;
  if (has_kernel(second)) {
    SecondWanted wanted = {wants(given[kDo])};
    for (std::size_t i = 0; i < kBy.size(); ++i)
      wanted[i + 1] = wants(given[kBy[i]]);
    const variable_list gradients = run_fused(second, wanted);
    auto next = gradients.begin();
    for (std::size_t i = 0; i < wanted.size(); ++i)
      if (wanted[i]) result[place(i == 0 ? kDo : kBy[i - 1])] = *next++;
    return result;
  }
  const variable_list gradients = composed(second, by);
  for (std::size_t i = 0; i < by.size(); ++i)
    result[place(by[i])] = gradients[i];
  return result;
}

at::Tensor output_tangent(const SecondCall& second) {
  if (has_kernel(second))
    return run_fused(second, {true, false, false, false, false})[0];
  const at::Tensor tangent = composed(second, {kDo})[0];
  return tangent.defined()
             ? tangent
             : at::zeros({second.call.q.size(0), second.call.q.size(1),
                          second.call.q.size(2), second.call.v.size(3)},
                         second.call.q.options());
}

}  // namespace polyattn
