// Other ops in place of the fused ones, for benchmarks to measure against.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <functional>

#include "polyattn/torch/attention.h"

namespace polyattn::nn {

struct OtherOps {
  // As polyattn::attention: q, k and v have four dimensions, scale is given.
  std::function<torch::Tensor(const torch::Tensor& q, const torch::Tensor& k,
                              const torch::Tensor& v,
                              const polyattn::AttentionOptions& options)>
      attention;
  // As polyattn::gelu.
  std::function<torch::Tensor(const torch::Tensor& x)> gelu;
};

// From now on the Attention and Mlp modules inside `module`, itself included,
// call these, and split q, k and v as torch does. Norms and weights that are
// watched are still those of the fused op; so is decoding with a DecodeCache.
void replace_ops(torch::nn::Module& module, const OtherOps& ops);

}  // namespace polyattn::nn
