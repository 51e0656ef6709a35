// Attention within square windows of a map of tokens, as in Swin.
//
//   WindowAttention attention(
//       WindowAttentionOptions(96, 3, 7).shift(3).activation("x^3/sqrt(N)"));
//   torch::Tensor y = attention->forward(x);  // [B, height, width, C], the
//   same
//
// A map whose sides are no multiples of the window is filled up with zeros
// below and on the right; these tokens are seen. Windows may be shifted down
// and to the right; what the edges cut off of them makes windows with what the
// opposite edge left over, whose tokens see those of their own edge alone. N of
// a formula is the number of keys that a token sees: side^2, fewer in those.
//
// To the score of two tokens a bias is added that depends on their offset: from
// a table, or with `cosine` (Swin v2) from an mlp on its logarithm. Scores of
// cosine are exp(logit_scale) cos(q, k), with a factor of 100 at most; the bias
// of k is zero then, whatever in_proj_bias holds; and the bias of the scores is
// 16 sigmoid(y) - 8 of the mlp's output y. The 8 is the one difference from
// Swin v2: softmax does not see it, and a power would see nothing else.
//
// Parameters: in_proj_weight [3 C, C] with the rows of q, k and v in this
// order, in_proj_bias [3 C], out_proj.*; bias_table [(2 side - 1)^2, H]; with
// cosine in its place logit_scale [H, 1, 1], bias_fc1.weight [512, 2],
// bias_fc1.bias, bias_fc2.weight [H, 512].
#pragma once

#include <torch/arg.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "polyattn/nn/attention_base.h"

namespace polyattn::nn {

struct WindowGrid;  // src/nn/windows.h

struct WindowAttentionOptions {
  WindowAttentionOptions(std::int64_t dim, std::int64_t heads,
                         std::int64_t window)
      : dim_(dim), heads_(heads), window_(window) {}

  TORCH_ARG(std::int64_t, dim);
  TORCH_ARG(std::int64_t, heads);
  // The side of a window, in tokens.
  TORCH_ARG(std::int64_t, window);
  // Of the windows, where a map has more than one along an axis.
  TORCH_ARG(std::int64_t, shift) = 0;
  // A formula (polyattn/activation.h).
  TORCH_ARG(std::string, activation) = "softmax";
  TORCH_ARG(bool, cosine) = false;
  // Of the attention weights, in training.
  TORCH_ARG(double, dropout) = 0;
  // Of the output of out_proj, in training.
  TORCH_ARG(double, projection_dropout) = 0;
};

class WindowAttentionImpl : public torch::nn::Cloneable<WindowAttentionImpl>,
                            public AttentionBase {
 public:
  explicit WindowAttentionImpl(const WindowAttentionOptions& options_);

  void reset() override;

  // Values that no initialisation draws: logit_scale, 10 at first.
  void reset_learned();

  // [B, height, width, C] -> [B, height, width, C].
  torch::Tensor forward(const torch::Tensor& x);

  std::string kind() const override { return "window"; }
  const std::string& activation() const override {
    return options.activation();
  }
  std::int64_t heads() const override { return options.heads(); }
  // Into logit_scale, or in equal parts into the rows of q and of k.
  std::vector<double> apply_gains(std::vector<double> gains) override;

  std::int64_t head_dim() const { return options.dim() / options.heads(); }
  // How the map of the last call lay in its windows.
  WindowGrid grid() const;

  WindowAttentionOptions options;
  torch::Tensor in_proj_weight;
  torch::Tensor in_proj_bias;
  torch::nn::Linear out_proj{nullptr};
  torch::Tensor bias_table;
  torch::Tensor logit_scale;
  torch::nn::Linear bias_fc1{nullptr};
  torch::nn::Linear bias_fc2{nullptr};

 private:
  Heads project(const torch::Tensor& windows);
  torch::Tensor score_bias();
  const torch::Tensor& mask_of(const WindowGrid& grid, torch::Device device);

  torch::Tensor offset_index_;  // i64 [N N]
  torch::Tensor log_offsets_;   // [(2 side - 1)^2, 2]
  // That of the last map, which is likely to be that of the next one.
  torch::Tensor mask_;
  std::int64_t mask_height_ = 0, mask_width_ = 0;
};

TORCH_MODULE(WindowAttention);

}  // namespace polyattn::nn
