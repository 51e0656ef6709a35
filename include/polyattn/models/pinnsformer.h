// PINNsformer (AdityaLab/pinnsformer): a transformer that maps the coordinates
// of a point to the unknowns of a differential equation.
//
//   Pinnsformer model(PinnsformerOptions().activation("x^3/sqrt(N)"));
//   const auto points = model->sequences(grid).requires_grad_();  // [P, 5, 2]
//   const torch::Tensor u = model->forward(points);               // [P, 5, 1]
//
// A point becomes a pseudo-sequence: the same point at t, t + s, ..., where t
// is the last coordinate. The rows of a sequence see each other, so that its
// first row is the point's, and the others are what follows it.
//
//   e = act(.. x + ff(act2(x + attn(y, y, y))) ..)  y = act1(x), encoder
//   d = act(.. x + ff(act2(x + attn(y, e, e))) ..)  of the same embedding x
//   u = linear_out(d)
//
// Every act is w1 sin + w2 cos. There are no norms, positions or dropout, and
// parameters bear the published names.
#pragma once

#include <torch/arg.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <cstdint>
#include <string>

#include "polyattn/nn/attention.h"
#include "polyattn/nn/cross_attention.h"
#include "polyattn/nn/wavelet.h"

namespace polyattn::models {

// The defaults are the published model, of 453,561 parameters.
struct PinnsformerOptions {
  // Coordinates of a point and unknowns.
  TORCH_ARG(std::int64_t, inputs) = 2;
  TORCH_ARG(std::int64_t, outputs) = 1;
  TORCH_ARG(std::int64_t, dim) = 32;
  // Layers of the encoder, and as many of the decoder.
  TORCH_ARG(std::int64_t, depth) = 1;
  TORCH_ARG(std::int64_t, heads) = 2;
  // Hidden widths, of the layers and of the head.
  TORCH_ARG(std::int64_t, feed_forward) = 256;
  TORCH_ARG(std::int64_t, hidden) = 512;
  // Rows of a pseudo-sequence, and how far apart they are.
  TORCH_ARG(std::int64_t, steps) = 5;
  TORCH_ARG(double, step) = 1e-4;
  // A formula (polyattn/activation.h), of both attentions.
  TORCH_ARG(std::string, activation) = "softmax";
  // polyattn/nn/initialise.h.
  TORCH_ARG(std::string, initialisation) = "pinn";
  TORCH_ARG(double, qk_gain) = 1;
};

// Three Linear with wavelets between them.
class WaveletMlpImpl : public torch::nn::Cloneable<WaveletMlpImpl> {
 public:
  // `hidden` is the width of both hidden layers.
  WaveletMlpImpl(std::int64_t dim_, std::int64_t hidden_);

  void reset() override;
  torch::Tensor forward(const torch::Tensor& x);

  std::int64_t dim;
  std::int64_t hidden;
  torch::nn::Sequential linear{nullptr};
};

TORCH_MODULE(WaveletMlp);

// A layer of the encoder, or of the decoder, whose keys and values are those of
// another sequence.
class PinnsformerLayerImpl : public torch::nn::Cloneable<PinnsformerLayerImpl> {
 public:
  PinnsformerLayerImpl(const PinnsformerOptions& options_, bool decoder_);

  void reset() override;
  // Without source: of the encoder.
  torch::Tensor forward(const torch::Tensor& x,
                        const torch::Tensor& source = {});

  PinnsformerOptions options;
  bool decoder;
  nn::Attention self_attention{nullptr};        // attn, of the encoder
  nn::CrossAttention cross_attention{nullptr};  // attn, of the decoder
  nn::Wavelet act1{nullptr};
  nn::Wavelet act2{nullptr};
  WaveletMlp ff{nullptr};
};

TORCH_MODULE(PinnsformerLayer);

// The layers, and an activation behind them.
class PinnsformerStackImpl : public torch::nn::Cloneable<PinnsformerStackImpl> {
 public:
  PinnsformerStackImpl(const PinnsformerOptions& options_, bool decoder_);

  void reset() override;
  torch::Tensor forward(torch::Tensor x, const torch::Tensor& source = {});

  PinnsformerOptions options;
  bool decoder;
  torch::nn::ModuleList layers{nullptr};
  nn::Wavelet act{nullptr};
};

TORCH_MODULE(PinnsformerStack);

class PinnsformerImpl : public torch::nn::Cloneable<PinnsformerImpl> {
 public:
  explicit PinnsformerImpl(const PinnsformerOptions& options_ = {});

  void reset() override;

  // [P, inputs] -> [P, steps, inputs], the first row of each being the point.
  torch::Tensor sequences(const torch::Tensor& points) const;

  // [P, N, inputs] -> [P, N, outputs], of any N.
  torch::Tensor forward(const torch::Tensor& sequences_);

  PinnsformerOptions options;
  torch::nn::Linear linear_emb{nullptr};
  PinnsformerStack encoder{nullptr};
  PinnsformerStack decoder{nullptr};
  torch::nn::Sequential linear_out{nullptr};
};

TORCH_MODULE(Pinnsformer);

}  // namespace polyattn::models
