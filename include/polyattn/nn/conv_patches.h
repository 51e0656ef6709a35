// Patches by convolutions of 3 x 3 with stride 2, each with a BatchNorm, and
// gelu between them: log2(patch_size) of them, the width doubling up to dim.
//
//   16: channels -> dim/8 -> dim/4 -> dim/2 -> dim
//
// Parameters and buffers, i from 0: convs.{i}.weight [out, in, 3, 3],
// norms.{i}.weight, .bias, .running_mean and .running_var [out],
// norms.{i}.num_batches_tracked.
#pragma once

#include <torch/arg.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <cstdint>

#include "polyattn/nn/short_conv.h"

namespace polyattn::nn {

struct ConvPatchOptions {
  ConvPatchOptions(std::int64_t patch_size, std::int64_t dim)
      : patch_size_(patch_size), dim_(dim) {}

  // A power of 2, which divides 2 dim.
  TORCH_ARG(std::int64_t, patch_size);
  TORCH_ARG(std::int64_t, dim);
  TORCH_ARG(std::int64_t, channels) = 3;
};

class ConvPatchEmbeddingImpl
    : public torch::nn::Cloneable<ConvPatchEmbeddingImpl> {
 public:
  explicit ConvPatchEmbeddingImpl(const ConvPatchOptions& options_);

  void reset() override;

  // [B, channels, height, width] -> [B, N, dim], the patches line by line.
  torch::Tensor forward(const torch::Tensor& images);

  // That of the patches of such images, which the patches must divide.
  Grid grid(std::int64_t height, std::int64_t width) const;

  ConvPatchOptions options;
  torch::nn::ModuleList convs{nullptr};
  torch::nn::ModuleList norms{nullptr};
};

TORCH_MODULE(ConvPatchEmbedding);

}  // namespace polyattn::nn
