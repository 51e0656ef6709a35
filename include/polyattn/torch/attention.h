// Attention on torch tensors, with gradients of every order.
//
//   at::Tensor o = polyattn::attention(
//       q, k, v, AttentionOptions().activation("x^3/sqrt(N)").causal(true));
//
// The call is that of torch's scaled_dot_product_attention, and so is the
// meaning of its arguments; polyattn/attention.h has the definition. The same
// operation is torch.ops.polyattn.attention for Python and TorchScript
// (src/torch/schema.cc has its signature).
//
// On the CPU, floats of 16, 32 and 64 bits go through the kernels of the core;
// everything else through the same definition in torch ops: other devices,
// derivatives of the third order and beyond, those of the second by
// coefficients or under a compiler or transform of torch, and there also
// dropout and a bias that wants a gradient. That takes an N x M matrix of
// memory.
//
// Errors throw c10::Error with a message that begins with [attention].
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Optional.h>
#include <torch/arg.h>

#include <string>

#include "polyattn/attention.h"

namespace polyattn {

struct AttentionOptions {
  // A formula (polyattn/activation.h).
  TORCH_ARG(std::string, activation) = "softmax";

  // Broadcast to [..., H, N, M]. bool: true where the row may see the key.
  // Floating point: as a bias.
  TORCH_ARG(c10::optional<at::Tensor>, mask) = c10::nullopt;

  // Floating point, broadcast to [..., H, N, M] and added to the scores, beside
  // a mask of either kind; -inf removes the key. For what is not softmax so do
  // numbers at or below -1e4, on the CPU with a warning: libraries that know
  // softmax alone mean that. It may want a gradient. What the leading
  // dimensions share is not copied: a mask [W, 1, N, M] and a bias [H, N, M] of
  // queries [B, W, H, N, D] are read as they are.
  TORCH_ARG(c10::optional<at::Tensor>, bias) = c10::nullopt;

  // The probability with which a weight is set to zero, the rest being divided
  // by 1 - dropout. Which ones follows from a number that is drawn from torch's
  // default generator.
  TORCH_ARG(double, dropout) = 0;

  // causal(true) is Causal::kFirst, as in scaled_dot_product_attention; a mask
  // may be given as well.
  TORCH_ARG(Causal, causal) = Causal::kNone;

  // Default: 1/sqrt(D).
  TORCH_ARG(c10::optional<double>, scale) = c10::nullopt;

  // Let k and v have fewer heads than q: query head h uses key head h / (H/G).
  TORCH_ARG(bool, gqa) = false;

  // Coefficients of x^0 .. x^P, [P + 1] or one row for each head [H, P + 1],
  // which stand in for those of the formula: its divisor is kept. They may
  // want a gradient.
  TORCH_ARG(c10::optional<at::Tensor>, coefficients) = c10::nullopt;

  // Dense or in linear time; by default whichever is expected to be faster
  // (polyattn/plan.h). Norms are computed on the dense path.
  TORCH_ARG(Path, path) = Path::kAuto;

  // How many keys before and behind its own position a row may see; -1: all. On
  // the dense path, whose time is then linear in N.
  TORCH_ARG(Window, window) = {};

  // Decay, for a polynomial under causality: the logarithms, none above 0, of
  // the factors by which each key fades all weights of keys before it
  // (polyattn/attention.h). Floating point, broadcast to [..., G, M]: [G, 1] is
  // a number for each key head. May want a gradient.
  TORCH_ARG(c10::optional<at::Tensor>, log_decay) = c10::nullopt;

 public:
  AttentionOptions& causal(bool on) {
    return causal(on ? Causal::kFirst : Causal::kNone);
  }
  AttentionOptions& window(std::int64_t left, std::int64_t right) {
    return window(Window{left, right});
  }
};

// q [..., H, N, D], k [..., G, M, D], v [..., G, M, E] -> [..., H, N, E].
// Leading dimensions are broadcast; with two or three dimensions there is one
// head, or one batch.
at::Tensor attention(const at::Tensor& q, const at::Tensor& k,
                     const at::Tensor& v, const AttentionOptions& options = {});

// Of each attention matrix: [..., H], f64, without gradient.
struct AttentionNorms {
  at::Tensor weight;         // ||A||_F, before dropout
  at::Tensor jacobian;       // ||dA/dS||_F
  at::Tensor max_abs_score;  // largest |s_ij| that was seen by its row
  at::Tensor non_finite;     // i64: outputs that are inf or NaN
};

struct AttentionWithNorms {
  at::Tensor output;
  AttentionNorms norms;
};

// The same, with the norms from the same pass.
AttentionWithNorms attention_with_norms(const at::Tensor& q,
                                        const at::Tensor& k,
                                        const at::Tensor& v,
                                        const AttentionOptions& options = {});

// What the arguments change by, of their sizes and types; none is zero.
struct AttentionTangents {
  c10::optional<at::Tensor> q = c10::nullopt, k = c10::nullopt,
                            v = c10::nullopt, bias = c10::nullopt;
};

struct AttentionWithTangent {
  at::Tensor output;
  at::Tensor tangent;  // what it changes by
};

// Forward mode, without an N x M matrix where the kernels can do it. Both
// results are differentiable. No dropout.
AttentionWithTangent attention_jvp(const at::Tensor& q, const at::Tensor& k,
                                   const at::Tensor& v,
                                   const AttentionTangents& tangents,
                                   const AttentionOptions& options = {});

}  // namespace polyattn
