// The fused ops on the CPU: the kernels of the core on threads of torch.
#include <ATen/ATen.h>

#include <vector>

#include "polyattn/attention.h"
#include "polyattn/norms.h"
#include "torch/core_errors.h"
#include "torch/fused.h"
#include "torch/gradient_parts.h"
#include "torch/layout.h"
#include "torch/parallel.h"
#include "torch/parts.h"

namespace polyattn {
namespace {

void run_forward(const Part& part, const AttentionResults& results) {
  TorchParallel parallel;
  const AttentionInputs in = part.inputs();
  with_torch_errors(
      [&] { attention_forward(in, part.call.config, results, parallel); });
}

void copy_norms(const Part& part, const std::vector<AttentionStats>& stats,
                const at::Tensor& norms) {
  auto to = norms.accessor<double, 3>();
  auto from = stats.begin();
  for (std::int64_t b = 0; b < part.call.q.size(0); ++b) {
    for (std::int64_t h = part.first; h < part.first + part.count; ++h) {
      to[b][h][0] = from->weight_sq;
      to[b][h][1] = from->jacobian_sq;
      to[b][h][2] = from->max_abs_score;
      to[b][h][3] = static_cast<double>(from->non_finite);
      ++from;
    }
  }
}

// With decay the linear path has no statistics. Norms come from sums of their
// own, and the largest score, which does not fade, from the dense path.
std::vector<AttentionStats> stats_with_decay(const Part& part,
                                             const at::Tensor& o) {
  const auto heads = static_cast<std::size_t>(part.call.q.size(0) * part.count);
  std::vector<AttentionStats> stats(heads);
  std::vector<AttentionNormsSq> norms(heads);
  const at::Tensor bad =
      at::isfinite(o).logical_not().sum({2, 3}).to(at::kDouble).contiguous();
  Part plain = part;
  plain.call.log_decay = at::Tensor();
  const at::Tensor unread = at::empty_like(o);
  run_forward(plain, {.o = view_of(unread), .stats = stats});
  TorchParallel parallel;
  const AttentionInputs in = part.inputs();
  with_torch_errors(
      [&] { attention_norms(in, part.call.config, norms, parallel); });
  for (std::size_t i = 0; i < heads; ++i) {
    stats[i].weight_sq = norms[i].weight;
    stats[i].jacobian_sq = norms[i].jacobian;
    stats[i].non_finite = static_cast<std::int64_t>(bad.data_ptr<double>()[i]);
  }
  return stats;
}

// The output is linear in the coefficients, so the derivative by the m-th is
// the product of d_o with the output of x^m alone: a forward pass for each.
void add_coefficient_gradient(const Part& part, const at::Tensor& d_o,
                              const at::Tensor& gradient) {
  Part monomial = part;
  Activation& activation = monomial.call.config.activation;
  // Powers overflow f16 long before their sum with small coefficients does.
  const bool is_double = part.call.config.compute == DType::kF64;
  const at::Tensor o =
      at::empty(d_o.sizes(), is_double ? at::kDouble : at::kFloat);
  for (int m = 0; m < gradient.size(0); ++m) {
    activation.degree = m;
    activation.coefficient.fill(0);
    activation.coefficient[static_cast<std::size_t>(m)] = 1;
    run_forward(monomial, {.o = view_of(o)});
    gradient[m] += at::sum(o.to(at::kDouble) * d_o);
  }
}

struct Gradients {
  Gradient dq, dk, dv, d_bias, d_log_decay;

  void run(const Part& part, const AttentionBackwardInputs& backward) {
    TorchParallel parallel;
    const AttentionInputs in = part.inputs();
    const AttentionGradients out = {
        .dq = dq.view_for(part, 1),
        .dk = dk.view_for(part, part.group),
        .dv = dv.view_for(part, part.group),
        .d_bias = d_bias.view_for_bias(part),
        .d_log_decay = d_log_decay.view_for_decay(part)};
    with_torch_errors([&] {
      attention_backward(in, part.call.config, backward, out, parallel);
    });
    dk.finish_part();
    dv.finish_part();
    d_bias.finish_part();
    d_log_decay.finish_part();
  }
};

}  // namespace

FusedResults forward_on_cpu(const Call& call, bool norms) {
  const FusedResults results = {empty_output(call.q, call.v.size(3)),
                                empty_rows(call.q), empty_norms(call.q, norms)};
  for (const Part& part : parts_of(call)) {
    const bool decays = call.log_decay.defined();
    const at::Tensor o = heads_of(results.o, part.first, part.count, 1);
    std::vector<AttentionStats> stats(
        norms && !decays ? static_cast<std::size_t>(call.q.size(0) * part.count)
                         : 0);
    run_forward(
        part,
        {.o = view_of(o), .rows = part.rows(results.rows), .stats = stats});
    if (norms && decays) stats = stats_with_decay(part, o);
    if (norms) copy_norms(part, stats, results.norms);
  }
  return results;
}

FusedGradients backward_on_cpu(const Call& call, const FusedOutputs& outputs,
                               Wanted wanted) {
  const bool no_heads = call.q.size(1) == 0;
  const auto totals = empty_gradients({call.q, call.k, call.v},
                                      {wanted[0], wanted[1], wanted[2]});
  const auto like = [](bool is_wanted, const at::Tensor& t) {
    return is_wanted ? at::empty(t.sizes(), t.options()) : at::Tensor();
  };
  Gradients gradients{{totals[0], no_heads},
                      {totals[1], no_heads},
                      {totals[2], no_heads},
                      {like(wanted[4], call.bias), no_heads},
                      {like(wanted[5], call.log_decay), no_heads}};
  const at::Tensor& c = call.coefficients;
  const at::Tensor dc =
      wanted[3] ? at::zeros(c.sizes(), at::kDouble) : at::Tensor();
  for (const Part& part : parts_of(call)) {
    const at::Tensor d_o =
        with_dense_rows(heads_of(outputs.d_o, part.first, part.count, 1));
    const at::Tensor o = heads_of(outputs.o, part.first, part.count, 1);
    if (wanted[0] || wanted[1] || wanted[2] || wanted[4] || wanted[5]) {
      gradients.run(part, {.d_o = view_of(d_o),
                           .o = view_of(o),
                           .rows = part.rows(outputs.rows)});
    }
    if (wanted[3]) {
      add_coefficient_gradient(part, d_o, c.dim() == 2 ? dc[part.first] : dc);
    }
  }
  return {gradients.dq.total(),     gradients.dk.total(),
          gradients.dv.total(),     wanted[3] ? dc.to(c.scalar_type()) : dc,
          gradients.d_bias.total(), gradients.d_log_decay.total()};
}

}  // namespace polyattn
