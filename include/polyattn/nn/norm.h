// Normalisation of the last dimension:
//
//   layer  y = (x - mean(x)) / sqrt(var(x) + eps) * weight + bias
//   rms    y = x / sqrt(mean(x^2) + eps) * weight
//
// Parameters: weight [C], bias [C] (layer only, and only if asked for).
#pragma once

#include <torch/arg.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <cstdint>
#include <string>

namespace polyattn::nn {

struct NormOptions {
  // NOLINTNEXTLINE(google-explicit-constructor): Norm(64), as torch has it.
  NormOptions(std::int64_t dim) : dim_(dim) {}

  TORCH_ARG(std::int64_t, dim);
  // layer or rms.
  TORCH_ARG(std::string, kind) = "layer";
  TORCH_ARG(bool, bias) = true;
  TORCH_ARG(double, eps) = 1e-5;
};

class NormImpl : public torch::nn::Cloneable<NormImpl> {
 public:
  explicit NormImpl(const NormOptions& options_);

  void reset() override;
  void reset_parameters();
  torch::Tensor forward(const torch::Tensor& x);

  NormOptions options;
  torch::Tensor weight;
  torch::Tensor bias;
};

TORCH_MODULE(Norm);

}  // namespace polyattn::nn
