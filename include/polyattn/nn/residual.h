// What may stand between a branch and the sum that it is added to.
#pragma once

#include <torch/arg.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <cstdint>

namespace polyattn::nn {

// Stochastic depth: in training, the branch of a sample is dropped with the
// given probability and divided by 1 - rate otherwise. The samples are those of
// the first dimension.
struct DropPathOptions {
  // NOLINTNEXTLINE(google-explicit-constructor): DropPath(0.1).
  DropPathOptions(double rate = 0) : rate_(rate) {}

  TORCH_ARG(double, rate);
};

class DropPathImpl : public torch::nn::Cloneable<DropPathImpl> {
 public:
  explicit DropPathImpl(const DropPathOptions& options_ = {});

  void reset() override {}
  torch::Tensor forward(const torch::Tensor& x);

  DropPathOptions options;
};

TORCH_MODULE(DropPath);

// A learned factor for each channel. Parameter: weight [C].
struct LayerScaleOptions {
  LayerScaleOptions(std::int64_t dim, double initial)
      : dim_(dim), initial_(initial) {}

  TORCH_ARG(std::int64_t, dim);
  TORCH_ARG(double, initial);
};

class LayerScaleImpl : public torch::nn::Cloneable<LayerScaleImpl> {
 public:
  explicit LayerScaleImpl(const LayerScaleOptions& options_);

  void reset() override;
  void reset_parameters();
  torch::Tensor forward(const torch::Tensor& x);

  LayerScaleOptions options;
  torch::Tensor weight;
};

TORCH_MODULE(LayerScale);

}  // namespace polyattn::nn
