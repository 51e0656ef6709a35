#include "polyattn/models/pinnsformer.h"

#include <torch/utils.h>

#include <cmath>

#include "polyattn/nn/initialise.h"

namespace polyattn::models {
namespace {

void check_positive(const char* name, std::int64_t value) {
  TORCH_CHECK(value > 0, "[Pinnsformer] ", name, ' ', value, " < 1");
}

torch::nn::Sequential wavelet_layers(std::int64_t in, std::int64_t hidden,
                                     std::int64_t out) {
  using torch::nn::Linear;
  return torch::nn::Sequential(Linear(in, hidden), nn::Wavelet(),
                               Linear(hidden, hidden), nn::Wavelet(),
                               Linear(hidden, out));
}

}  // namespace

WaveletMlpImpl::WaveletMlpImpl(std::int64_t dim_, std::int64_t hidden_)
    : dim(dim_), hidden(hidden_) {
  WaveletMlpImpl::reset();
}

void WaveletMlpImpl::reset() {
  linear = register_module("linear", wavelet_layers(dim, hidden, dim));
}

torch::Tensor WaveletMlpImpl::forward(const torch::Tensor& x) {
  return linear->forward(x);
}

PinnsformerLayerImpl::PinnsformerLayerImpl(const PinnsformerOptions& options_,
                                           bool decoder_)
    : options(options_), decoder(decoder_) {
  PinnsformerLayerImpl::reset();
}

void PinnsformerLayerImpl::reset() {
  const std::int64_t dim = options.dim(), heads = options.heads();
  if (decoder) {
    cross_attention = register_module(
        "attn", nn::CrossAttention(nn::CrossAttentionOptions(dim, heads)
                                       .activation(options.activation())));
  } else {
    self_attention = register_module(
        "attn",
        nn::Attention(
            nn::AttentionOptions(dim, heads).activation(options.activation())));
  }
  ff = register_module("ff", WaveletMlp(dim, options.feed_forward()));
  act1 = register_module("act1", nn::Wavelet());
  act2 = register_module("act2", nn::Wavelet());
}

torch::Tensor PinnsformerLayerImpl::forward(const torch::Tensor& x,
                                            const torch::Tensor& source) {
  const torch::Tensor rows = act1->forward(x);
  const torch::Tensor y = x + (decoder ? cross_attention->forward(rows, source)
                                       : self_attention->forward(rows));
  return y + ff->forward(act2->forward(y));
}

PinnsformerStackImpl::PinnsformerStackImpl(const PinnsformerOptions& options_,
                                           bool decoder_)
    : options(options_), decoder(decoder_) {
  PinnsformerStackImpl::reset();
}

void PinnsformerStackImpl::reset() {
  layers = register_module("layers", torch::nn::ModuleList());
  for (std::int64_t i = 0; i < options.depth(); ++i)
    layers->push_back(PinnsformerLayer(options, decoder));
  act = register_module("act", nn::Wavelet());
}

torch::Tensor PinnsformerStackImpl::forward(torch::Tensor x,
                                            const torch::Tensor& source) {
  for (const auto& layer : *layers)
    x = layer->as<PinnsformerLayer>()->forward(x, source);
  return act->forward(x);
}

PinnsformerImpl::PinnsformerImpl(const PinnsformerOptions& options_)
    : options(options_) {
  check_positive("inputs", options.inputs());
  check_positive("outputs", options.outputs());
  check_positive("depth", options.depth());
  check_positive("feed_forward", options.feed_forward());
  check_positive("hidden", options.hidden());
  check_positive("steps", options.steps());
  TORCH_CHECK(std::isfinite(options.step()) && options.step() > 0,
              "[Pinnsformer] step ", options.step(),
              " is no finite number above 0");
  PinnsformerImpl::reset();
}

void PinnsformerImpl::reset() {
  linear_emb = register_module(
      "linear_emb", torch::nn::Linear(options.inputs(), options.dim()));
  encoder = register_module("encoder", PinnsformerStack(options, false));
  decoder = register_module("decoder", PinnsformerStack(options, true));
  linear_out = register_module(
      "linear_out",
      wavelet_layers(options.dim(), options.hidden(), options.outputs()));
  nn::initialise(*this, nn::InitialiseOptions(options.initialisation())
                            .qk_gain(options.qk_gain()));
}

torch::Tensor PinnsformerImpl::sequences(const torch::Tensor& points) const {
  TORCH_CHECK(points.dim() == 2 && points.size(1) == options.inputs(),
              "[Pinnsformer] points of size ", points.sizes(), " are not [P, ",
              options.inputs(), "]");
  torch::Tensor shift =
      torch::zeros({options.steps(), options.inputs()}, points.options());
  shift.select(1, -1).copy_(
      torch::arange(options.steps(), torch::kDouble).mul(options.step()));
  return points.unsqueeze(1) + shift;
}

torch::Tensor PinnsformerImpl::forward(const torch::Tensor& sequences_) {
  TORCH_CHECK(sequences_.dim() == 3 && sequences_.size(2) == options.inputs(),
              "[Pinnsformer] sequences of size ", sequences_.sizes(),
              " are not [P, N, ", options.inputs(), "]");
  const torch::Tensor x = linear_emb->forward(sequences_);
  return linear_out->forward(decoder->forward(x, encoder->forward(x)));
}

}  // namespace polyattn::models
