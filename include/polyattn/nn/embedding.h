// What turns images and tokens into rows [B, N, C].
#pragma once

#include <torch/arg.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <cstdint>

namespace polyattn::nn {

// A convolution whose kernel is its stride: [B, channels, height, width] ->
// [B, (height / patch) * (width / patch), dim]. Parameters: proj.weight,
// proj.bias.
struct PatchEmbeddingOptions {
  PatchEmbeddingOptions(std::int64_t patch_size, std::int64_t dim)
      : patch_size_(patch_size), dim_(dim) {}

  TORCH_ARG(std::int64_t, patch_size);
  TORCH_ARG(std::int64_t, dim);
  TORCH_ARG(std::int64_t, channels) = 3;
};

class PatchEmbeddingImpl : public torch::nn::Cloneable<PatchEmbeddingImpl> {
 public:
  explicit PatchEmbeddingImpl(const PatchEmbeddingOptions& options_);

  void reset() override;
  torch::Tensor forward(const torch::Tensor& images);

  PatchEmbeddingOptions options;
  torch::nn::Conv2d proj{nullptr};
};

TORCH_MODULE(PatchEmbedding);

// One learned row before all others: [B, N, C] -> [B, 1 + N, C]. Parameter:
// weight [1, 1, C].
class ClassTokenImpl : public torch::nn::Cloneable<ClassTokenImpl> {
 public:
  // alone: nothing is added to it before it is normalised, so that it must not
  // begin near zero, where its gradient is large.
  explicit ClassTokenImpl(std::int64_t dim, bool alone = false);

  void reset() override;
  torch::Tensor forward(const torch::Tensor& x);

  bool alone() const { return alone_; }

  torch::Tensor weight;

 private:
  std::int64_t dim_;
  bool alone_;
};

TORCH_MODULE(ClassToken);

struct TableOptions {
  TableOptions(std::int64_t rows, std::int64_t dim) : rows_(rows), dim_(dim) {}

  TORCH_ARG(std::int64_t, rows);
  TORCH_ARG(std::int64_t, dim);
};

// A learned row for each position, added: x [B, N, C], whose first row has
// position `first`. Parameter: weight [rows, C].
class PositionEmbeddingImpl
    : public torch::nn::Cloneable<PositionEmbeddingImpl> {
 public:
  explicit PositionEmbeddingImpl(const TableOptions& options_);

  void reset() override;
  torch::Tensor forward(const torch::Tensor& x, std::int64_t first = 0);

  TableOptions options;
  torch::Tensor weight;
};

TORCH_MODULE(PositionEmbedding);

// A learned row for each token: i64 [B, N] -> [B, N, C]. On the CPU a token out
// of range is an error that names it. Parameter: weight [rows, C].
class TokenEmbeddingImpl : public torch::nn::Cloneable<TokenEmbeddingImpl> {
 public:
  explicit TokenEmbeddingImpl(const TableOptions& options_);

  void reset() override;
  torch::Tensor forward(const torch::Tensor& tokens);

  // The same table as output layer: x [B, N, C] -> [B, N, rows].
  torch::Tensor logits(const torch::Tensor& x);

  TableOptions options;
  torch::Tensor weight;
};

TORCH_MODULE(TokenEmbedding);

}  // namespace polyattn::nn
