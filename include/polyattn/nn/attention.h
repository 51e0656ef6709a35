// Multi-head attention with projections, for any activation.
//
//   Attention attention(AttentionOptions(192, 3).activation("x^3/sqrt(N)"));
//   torch::Tensor y = attention->forward(x);  // [B, N, C] -> [B, N, C]
//
// Parameters bear the names and shapes of torch.nn.MultiheadAttention, so that
// states interchange: in_proj_weight [(H + 2G) D, C] with the rows of q, k and
// v in this order, in_proj_bias, out_proj.weight [C, H D], out_proj.bias. Where
// asked for: q_norm.weight and k_norm.weight [D], score_scale [H], coefficients
// [P + 1] or [H, P + 1], output_norm.weight [D], gate_proj.weight
// [H D, C] and gate_proj.bias [H D], short_conv.weight [(H + 2G) D, 1, width],
// or [G D, 1, 3, 3] on a grid, hybrid_gate [H]; of decay, log_decay_rate [G],
// or decay_proj.weight [G, C] and decay_proj.bias [G].
//
// Letters as in docs/design.md; C is the width of the rows, `dim`.
#pragma once

#include <torch/arg.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "polyattn/nn/attention_base.h"
#include "polyattn/nn/decode_cache.h"
#include "polyattn/nn/kv_cache.h"
#include "polyattn/nn/norm.h"
#include "polyattn/nn/rotary.h"
#include "polyattn/nn/short_conv.h"

namespace polyattn::nn {

struct AttentionOptions {
  AttentionOptions(std::int64_t dim, std::int64_t heads)
      : dim_(dim), heads_(heads) {}

  TORCH_ARG(std::int64_t, dim);
  TORCH_ARG(std::int64_t, heads);
  // Default: heads.
  TORCH_ARG(std::optional<std::int64_t>, kv_heads) = std::nullopt;
  // Default: dim / heads.
  TORCH_ARG(std::optional<std::int64_t>, head_dim) = std::nullopt;
  // A formula (polyattn/activation.h).
  TORCH_ARG(std::string, activation) = "softmax";
  TORCH_ARG(bool, bias) = true;
  TORCH_ARG(bool, causal) = false;
  // Of the attention weights, in training.
  TORCH_ARG(double, dropout) = 0;
  // Of the output of out_proj, in training.
  TORCH_ARG(double, projection_dropout) = 0;
  TORCH_ARG(std::optional<RotaryOptions>, rotary) = std::nullopt;
  // Of each row of q and k, before they are turned: none, layer (without bias)
  // or rms.
  TORCH_ARG(std::string, qk_norm) = "none";
  // A learned factor of the scores for each head, 1/sqrt(D) at first.
  TORCH_ARG(bool, learned_scale) = false;
  // Of a polynomial: none, shared (one set for all heads) or head.
  TORCH_ARG(std::string, learned_coefficients) = "none";
  // Of each head's row of the output, before out_proj: none or rms.
  TORCH_ARG(std::string, output_norm) = "none";
  // The output, after its norm, times sigmoid(gate_proj(x)), before out_proj.
  TORCH_ARG(bool, output_gate) = false;
  // A (V - m) + m in place of A V, where m is the mean of the values that the
  // row sees: as if the rows of A summed to 1.
  TORCH_ARG(bool, center_values) = false;
  // The width of a convolution of each channel of q, k and v over the rows
  // before (polyattn/nn/short_conv.h), ahead of norms and rotation; 0: none.
  // On a grid it is of v alone, 3 x 3.
  TORCH_ARG(std::int64_t, short_conv) = 0;
  TORCH_ARG(std::optional<Grid>, grid) = std::nullopt;
  // Holds ||A||_F of each example and head at norm_factor times that of softmax
  // on the same scores, to see what depends on it: none; rescale, A times what
  // is missing, gradients included; penalty, norm_penalty() for the loss. Not
  // for causal attention, whose rows would learn of later ones. Takes an N x N
  // matrix.
  TORCH_ARG(std::string, norm_clamp) = "none";
  TORCH_ARG(double, norm_factor) = 1;
  // 0: none. Softmax then sees its own row and those near it alone: if causal,
  // the last `window` rows, its own included; if not, `window` rows on each
  // side. With any other activation it stands beside softmax in such a window:
  // O = window softmax + hybrid_gate_h * what the activation gives, over all
  // rows and with a divisor of its own, of the same q, k and v. What is
  // watched, matched, centred or learned of A is of the activation's part.
  TORCH_ARG(std::int64_t, window) = 0;
  // Of a polynomial under causality, the factors by which each key fades what
  // is before it (polyattn/attention.h): none; head, a learned number for each
  // key head, exp(-exp(log_decay_rate)), at first 1 - 2^-5 to 1 - 2^-12 as
  // retention has it; gate, one for each token and key head,
  // exp(-softplus(decay_proj(x))), at first 0.999.
  TORCH_ARG(std::string, decay) = "none";
};

class AttentionImpl : public torch::nn::Cloneable<AttentionImpl>,
                      public AttentionBase {
 public:
  explicit AttentionImpl(const AttentionOptions& options_);

  void reset() override;

  // Values that no initialisation draws: norms, score_scale, coefficients.
  void reset_learned();

  // x [B, N, C]. The mask broadcasts to [B, H, N, N], as polyattn::attention
  // has it: bool, true where the row may see the key, or added to the scores.
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& mask = {});

  // Appends the keys and values of x, and attends causally to all that are
  // stored: in steps of any length the result is that of the whole sequence.
  torch::Tensor forward(const torch::Tensor& x, KvCache& cache);

  // The same with what may stand in for keys and values: a polynomial's sums.
  torch::Tensor forward(const torch::Tensor& x, DecodeCache& cache);

  std::string kind() const override { return "token"; }
  const std::string& activation() const override {
    return options.activation();
  }
  std::int64_t heads() const override { return options.heads(); }
  std::vector<double> apply_gains(std::vector<double> gains) override;

  // With norm_clamp penalty, of the last call in training: the mean over
  // examples and heads of log(||A||_F / (norm_factor ||softmax||_F))^2.
  // Undefined otherwise.
  const torch::Tensor& norm_penalty() const { return norm_penalty_; }

  std::int64_t kv_heads() const;
  std::int64_t head_dim() const;

  AttentionOptions options;
  torch::Tensor in_proj_weight;
  torch::Tensor in_proj_bias;
  torch::nn::Linear out_proj{nullptr};
  Norm q_norm{nullptr};
  Norm k_norm{nullptr};
  torch::Tensor score_scale;
  torch::Tensor coefficients;
  torch::Tensor hybrid_gate;
  Norm output_norm{nullptr};
  torch::nn::Linear gate_proj{nullptr};
  ShortConv short_conv{nullptr};
  torch::Tensor log_decay_rate;
  torch::nn::Linear decay_proj{nullptr};

 private:
  void register_projections();
  void register_learned();
  // Rows x from position `first` on. `tail`: that of the short convolution, if
  // there may be rows before.
  Heads project(const torch::Tensor& x, std::int64_t first = 0,
                torch::Tensor* tail = nullptr);
  Heads finish(const Heads& rows, std::int64_t first);
  torch::Tensor attend(const torch::Tensor& x, Heads heads,
                       const torch::Tensor& mask, Causal causal);
  // Of the rows x [B, N, C]: [G, 1] or [B, G, N]; undefined without decay.
  torch::Tensor log_decay(const torch::Tensor& x);
  // These may put other queries into `heads` (watched_attention).
  torch::Tensor weighted(Heads& heads, const torch::Tensor& mask, Causal causal,
                         const torch::Tensor& log_decay);
  torch::Tensor centered(Heads& heads, const torch::Tensor& mask,
                         Causal causal);
  polyattn::AttentionOptions call_options(const torch::Tensor& mask,
                                          Causal causal) const;
  // attention_window.cc: the window alone, and beside the output of the rest.
  Window window_of(Causal causal) const;
  bool slides() const;
  torch::Tensor with_window(const Heads& heads, const torch::Tensor& mask,
                            Causal causal, const torch::Tensor& rest);
  torch::Tensor clamped(const Heads& heads,
                        const polyattn::AttentionOptions& call,
                        const torch::Tensor& o);
  torch::Tensor project_out(const torch::Tensor& x, const torch::Tensor& o);
  DecodeCall decode_call() const;
  double score_factor() const;
  void check_rows(const torch::Tensor& x) const;

  std::optional<Rotary> rotary_;
  torch::Tensor norm_penalty_;
};

TORCH_MODULE(Attention);

}  // namespace polyattn::nn
