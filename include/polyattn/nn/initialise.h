// Initialisation by name. What each name means for each kind of parameter
// stands in docs/models.md.
//
//   torch   what torch's own modules do
//   vit     truncated normal of 0.02
//   gpt2    normal of 0.02, the ends of the branches divided by sqrt(2 layers)
//   xavier  uniform by Glorot and Bengio, q, k and v each as a matrix
//   pinn    uniform by Glorot and Bengio with biases of 0.01; in_proj as torch
#pragma once

#include <torch/arg.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace polyattn::nn {

struct InitialiseOptions {
  // NOLINTNEXTLINE(google-explicit-constructor): initialise(*model, {"vit"}).
  InitialiseOptions(std::string name) : name_(std::move(name)) {}

  TORCH_ARG(std::string, name);
  // Multiplies the rows of in_proj_weight that make q, and those that make k:
  // the scores grow by its square.
  TORCH_ARG(double, qk_gain) = 1;
  // Default: torch's generator of the CPU, so that torch::manual_seed decides.
  TORCH_ARG(std::optional<std::uint64_t>, seed) = std::nullopt;
};

// Sets every parameter of the modules of polyattn::nn and of torch's Linear,
// Conv2d, Embedding, LayerNorm and BatchNorm2d inside `module`; others are left
// alone.
// Values are drawn on the CPU in f32, so that they depend neither on device nor
// on type. The layers that gpt2 counts are the attention layers of `module`.
void initialise(torch::nn::Module& module, const InitialiseOptions& options);

// The names, in the order above.
std::vector<std::string> initialisation_names();

}  // namespace polyattn::nn
