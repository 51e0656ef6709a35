// Cross-covariance image transformer (XCiT): patches by convolutions, Fourier
// positions, blocks in which channels attend to channels, then a class token
// with blocks of its own, norm, head.
//
//   XCiT model(xcit_options("nano_12_p16"));
//   torch::Tensor logits = model->forward(images);  // [B, 3, 224, 224]
//
// Images may have any size that the patches divide. In the formula of the
// blocks N is the number of channels of a head, in that of the class blocks the
// number of patches and the class token.
#pragma once

#include <torch/arg.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "polyattn/models/weights.h"
#include "polyattn/nn/conv_patches.h"
#include "polyattn/nn/embedding.h"
#include "polyattn/nn/fourier_positions.h"
#include "polyattn/nn/xca_block.h"

namespace polyattn::models {

struct XCiTOptions {
  XCiTOptions(std::int64_t dim, std::int64_t depth, std::int64_t heads)
      : depth_(depth), block_(dim, heads) {}

  TORCH_ARG(std::int64_t, depth);
  // Width, heads, activation, mlp, layer scales and drop path of all blocks;
  // those of the class token have no drop path.
  TORCH_ARG(nn::XcaBlockOptions, block);
  TORCH_ARG(std::int64_t, class_depth) = 2;
  // Whether the class blocks normalise all rows before their mlp.
  TORCH_ARG(bool, tokens_norm) = true;
  // What tokens() counts; forward() takes other sizes too.
  TORCH_ARG(std::int64_t, image_size) = 224;
  // A power of 2.
  TORCH_ARG(std::int64_t, patch_size) = 16;
  TORCH_ARG(std::int64_t, channels) = 3;
  TORCH_ARG(std::int64_t, classes) = 1000;
  // Of the embedded patches.
  TORCH_ARG(double, dropout) = 0;
  // polyattn/nn/initialise.h.
  TORCH_ARG(std::string, initialisation) = "vit";
  // Of the class attention: channels are normalised, whatever their gain.
  TORCH_ARG(double, qk_gain) = 1;

 public:
  XCiTOptions& activation(const std::string& formula) {
    block_.attention().activation(formula);
    return *this;
  }
};

// nano_12_p16, tiny_12_p16, tiny_24_p16, small_12_p16, small_24_p16,
// medium_24_p16, large_24_p16, the same with p8, tiny28 (grey, 28 pixels),
// tiny32 (32 pixels). docs/models.md has their sizes.
XCiTOptions xcit_options(const std::string& name);
std::vector<std::string> xcit_names();

class XCiTImpl : public torch::nn::Cloneable<XCiTImpl> {
 public:
  explicit XCiTImpl(const XCiTOptions& options_);

  void reset() override;

  // [B, channels, height, width] -> [B, classes].
  torch::Tensor forward(const torch::Tensor& images);

  // The row that the head reads: [B, dim].
  torch::Tensor features(const torch::Tensor& images);

  // Rows that the class token sees in an image of image_size, itself included.
  std::int64_t tokens() const;

  XCiTOptions options;
  nn::ConvPatchEmbedding patches{nullptr};
  nn::FourierPositions positions{nullptr};
  torch::nn::ModuleList blocks{nullptr};
  nn::ClassToken class_token{nullptr};
  torch::nn::ModuleList class_blocks{nullptr};
  nn::Norm norm{nullptr};
  torch::nn::Linear head{nullptr};
};

TORCH_MODULE(XCiT);

// Weights under the names of facebookresearch/xcit, or of timm, which keeps q,
// k and v of the class attention apart.
void load_xcit(XCiT& model, const NamedTensors& tensors);

}  // namespace polyattn::models
