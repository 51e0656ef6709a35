#include "polyattn/nn/embedding.h"

namespace polyattn::nn {
namespace {

// The standard deviation of tables that are not tokens: that of "torch" too,
// which has no custom of its own for them.
constexpr double kTableStd = 0.02;

void check_table(const char* op, const TableOptions& options) {
  TORCH_CHECK(options.rows() > 0, '[', op, "] rows ", options.rows(), " < 1");
  TORCH_CHECK(options.dim() > 0, '[', op, "] dim ", options.dim(), " < 1");
}

}  // namespace

PatchEmbeddingImpl::PatchEmbeddingImpl(const PatchEmbeddingOptions& options_)
    : options(options_) {
  TORCH_CHECK(options.patch_size() > 0, "[PatchEmbedding] patch_size ",
              options.patch_size(), " < 1");
  TORCH_CHECK(options.dim() > 0, "[PatchEmbedding] dim ", options.dim(),
              " < 1");
  TORCH_CHECK(options.channels() > 0, "[PatchEmbedding] channels ",
              options.channels(), " < 1");
  PatchEmbeddingImpl::reset();
}

void PatchEmbeddingImpl::reset() {
  proj = register_module(
      "proj", torch::nn::Conv2d(torch::nn::Conv2dOptions(options.channels(),
                                                         options.dim(),
                                                         options.patch_size())
                                    .stride(options.patch_size())));
}

torch::Tensor PatchEmbeddingImpl::forward(const torch::Tensor& images) {
  TORCH_CHECK(images.dim() == 4 && images.size(1) == options.channels(),
              "[PatchEmbedding] images of size ", images.sizes(),
              " are not [B, ", options.channels(), ", height, width]");
  const std::int64_t p = options.patch_size();
  TORCH_CHECK(images.size(2) % p == 0 && images.size(3) % p == 0,
              "[PatchEmbedding] images of ", images.size(2), " x ",
              images.size(3), " are no multiple of patch_size ", p);
  return proj->forward(images).flatten(2).transpose(1, 2);
}

ClassTokenImpl::ClassTokenImpl(std::int64_t dim, bool alone)
    : dim_(dim), alone_(alone) {
  TORCH_CHECK(dim > 0, "[ClassToken] dim ", dim, " < 1");
  ClassTokenImpl::reset();
}

void ClassTokenImpl::reset() {
  weight = register_parameter("weight",
                              alone_ ? torch::randn({1, 1, dim_}) * kTableStd
                                     : torch::zeros({1, 1, dim_}));
}

torch::Tensor ClassTokenImpl::forward(const torch::Tensor& x) {
  return torch::cat({weight.expand({x.size(0), 1, dim_}), x}, 1);
}

PositionEmbeddingImpl::PositionEmbeddingImpl(const TableOptions& options_)
    : options(options_) {
  check_table("PositionEmbedding", options);
  PositionEmbeddingImpl::reset();
}

void PositionEmbeddingImpl::reset() {
  weight = register_parameter(
      "weight", torch::randn({options.rows(), options.dim()}) * kTableStd);
}

torch::Tensor PositionEmbeddingImpl::forward(const torch::Tensor& x,
                                             std::int64_t first) {
  TORCH_CHECK(x.dim() == 3 && x.size(2) == options.dim(),
              "[PositionEmbedding] x of size ", x.sizes(), " is not [B, N, ",
              options.dim(), "]");
  TORCH_CHECK(first >= 0, "[PositionEmbedding] first position ", first, " < 0");
  const std::int64_t end = first + x.size(1);
  TORCH_CHECK(end <= options.rows(), "[PositionEmbedding] position ", end - 1,
              " is beyond the ", options.rows(), " that were learned");
  return x + weight.narrow(0, first, x.size(1));
}

TokenEmbeddingImpl::TokenEmbeddingImpl(const TableOptions& options_)
    : options(options_) {
  check_table("TokenEmbedding", options);
  TokenEmbeddingImpl::reset();
}

void TokenEmbeddingImpl::reset() {
  weight = register_parameter("weight",
                              torch::randn({options.rows(), options.dim()}));
}

torch::Tensor TokenEmbeddingImpl::forward(const torch::Tensor& tokens) {
  TORCH_CHECK(tokens.scalar_type() == torch::kLong ||
                  tokens.scalar_type() == torch::kInt,
              "[TokenEmbedding] tokens of type ", tokens.scalar_type(),
              " are neither i64 nor i32");
  // Elsewhere the check would wait for the device.
  if (tokens.is_cpu() && tokens.numel() > 0) {
    const auto least = tokens.min().item<std::int64_t>();
    const auto most = tokens.max().item<std::int64_t>();
    TORCH_CHECK(least >= 0 && most < options.rows(), "[TokenEmbedding] token ",
                least < 0 ? least : most, " is not in [0, ", options.rows(),
                ")");
  }
  return torch::embedding(weight, tokens);
}

torch::Tensor TokenEmbeddingImpl::logits(const torch::Tensor& x) {
  return torch::linear(x, weight);
}

}  // namespace polyattn::nn
