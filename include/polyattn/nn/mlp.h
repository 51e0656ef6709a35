// fc2(dropout(gelu(fc1(x)))), then dropout.
#pragma once

#include <torch/arg.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <string>

namespace polyattn::nn {

struct OtherOps;  // src/nn/other_ops.h, for benchmarks

struct MlpOptions {
  MlpOptions(std::int64_t dim, std::int64_t hidden)
      : dim_(dim), hidden_(hidden) {}

  TORCH_ARG(std::int64_t, dim);
  TORCH_ARG(std::int64_t, hidden);
  // Of gelu, as torch calls it: none, or tanh as GPT-2 has it.
  TORCH_ARG(std::string, approximate) = "none";
  TORCH_ARG(bool, bias) = true;
  TORCH_ARG(double, dropout) = 0;
};

class MlpImpl : public torch::nn::Cloneable<MlpImpl> {
 public:
  explicit MlpImpl(const MlpOptions& options_);

  void reset() override;
  torch::Tensor forward(const torch::Tensor& x);

  MlpOptions options;
  torch::nn::Linear fc1{nullptr};
  torch::nn::Linear fc2{nullptr};

 private:
  friend void replace_ops(torch::nn::Module& module, const OtherOps& ops);

  std::function<torch::Tensor(const torch::Tensor& x)> other_gelu_;
};

TORCH_MODULE(Mlp);

}  // namespace polyattn::nn
