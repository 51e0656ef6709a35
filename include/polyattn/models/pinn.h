// The plain physics-informed network: a multilayer perceptron with tanh from
// the coordinates of a point to the unknowns of a differential equation, the
// baseline of PINNsformer.
//
//   Pinn model(PinnOptions().hidden(128));
//   const torch::Tensor u = model->forward(points);  // [..., 2] -> [..., 1]
#pragma once

#include <torch/arg.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <cstdint>
#include <string>

namespace polyattn::models {

// The defaults are the baseline of AdityaLab/pinnsformer, of 527,361
// parameters, which bear its names.
struct PinnOptions {
  // Coordinates of a point and unknowns.
  TORCH_ARG(std::int64_t, inputs) = 2;
  TORCH_ARG(std::int64_t, outputs) = 1;
  TORCH_ARG(std::int64_t, hidden) = 512;
  // Linear layers, the last included.
  TORCH_ARG(std::int64_t, depth) = 4;
  // polyattn/nn/initialise.h.
  TORCH_ARG(std::string, initialisation) = "pinn";
};

class PinnImpl : public torch::nn::Cloneable<PinnImpl> {
 public:
  explicit PinnImpl(const PinnOptions& options_ = {});

  void reset() override;
  torch::Tensor forward(const torch::Tensor& points);

  PinnOptions options;
  torch::nn::Sequential linear{nullptr};
};

TORCH_MODULE(Pinn);

}  // namespace polyattn::models
