#include "polyattn/nn/conv_patches.h"

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>

#include <bit>

#include "polyattn/torch/gelu.h"

namespace polyattn::nn {

ConvPatchEmbeddingImpl::ConvPatchEmbeddingImpl(const ConvPatchOptions& options_)
    : options(options_) {
  const std::int64_t patch = options.patch_size(), dim = options.dim();
  TORCH_CHECK(
      patch > 1 && std::has_single_bit(static_cast<std::uint64_t>(patch)),
      "[ConvPatchEmbedding] patch_size ", patch, " is no power of 2 above 1");
  TORCH_CHECK(dim > 0 && 2 * dim % patch == 0, "[ConvPatchEmbedding] dim ", dim,
              " is no positive multiple of ", patch / 2,
              ", half of patch_size");
  TORCH_CHECK(options.channels() > 0, "[ConvPatchEmbedding] channels ",
              options.channels(), " < 1");
  ConvPatchEmbeddingImpl::reset();
}

void ConvPatchEmbeddingImpl::reset() {
  convs = register_module("convs", torch::nn::ModuleList());
  norms = register_module("norms", torch::nn::ModuleList());
  std::int64_t in = options.channels();
  for (std::int64_t part = options.patch_size() / 2; part > 0; part /= 2) {
    const std::int64_t out = options.dim() / part;
    convs->push_back(torch::nn::Conv2d(
        torch::nn::Conv2dOptions(in, out, 3).stride(2).padding(1).bias(false)));
    norms->push_back(torch::nn::BatchNorm2d(out));
    in = out;
  }
}

Grid ConvPatchEmbeddingImpl::grid(std::int64_t height,
                                  std::int64_t width) const {
  const std::int64_t patch = options.patch_size();
  TORCH_CHECK(
      height > 0 && width > 0 && height % patch == 0 && width % patch == 0,
      "[ConvPatchEmbedding] images of ", height, " x ", width,
      " are no multiple of patch_size ", patch);
  return {height / patch, width / patch};
}

torch::Tensor ConvPatchEmbeddingImpl::forward(const torch::Tensor& images) {
  TORCH_CHECK(images.dim() == 4 && images.size(1) == options.channels(),
              "[ConvPatchEmbedding] images of size ", images.sizes(),
              " are not [B, ", options.channels(), ", height, width]");
  grid(images.size(2), images.size(3));
  torch::Tensor x = images;
  for (std::size_t i = 0; i < convs->size(); ++i) {
    if (i > 0) x = polyattn::gelu(x);
    x = convs->at<torch::nn::Conv2dImpl>(i).forward(x);
    x = norms->at<torch::nn::BatchNorm2dImpl>(i).forward(x);
  }
  return x.flatten(2).transpose(1, 2).contiguous();
}

}  // namespace polyattn::nn
