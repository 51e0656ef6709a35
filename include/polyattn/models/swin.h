// Swin, versions 1 and 2: patches, and stages of blocks that attend within
// windows, shifted in every second block; between stages four tokens become
// one of twice the width. With softmax it is torchvision's SwinTransformer.
//
//   Swin model(swin_options("swin-tiny").activation("x^3/sqrt(N)"));
//   torch::Tensor logits = model->forward(images);  // [B, 3, 224, 224]
#pragma once

#include <torch/arg.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "polyattn/models/weights.h"
#include "polyattn/nn/embedding.h"
#include "polyattn/nn/mlp.h"
#include "polyattn/nn/norm.h"
#include "polyattn/nn/residual.h"
#include "polyattn/nn/window_attention.h"

namespace polyattn::models {

struct SwinBlockOptions {
  SwinBlockOptions(const nn::WindowAttentionOptions& attention,
                   const nn::MlpOptions& mlp)
      : attention_(attention), mlp_(mlp) {}

  TORCH_ARG(nn::WindowAttentionOptions, attention);
  TORCH_ARG(nn::MlpOptions, mlp);
  // x + norm(branch(x)) in place of x + branch(norm(x)).
  TORCH_ARG(bool, post_norm) = false;
  // The value at which the layer scales begin, last of each branch. Default:
  // none.
  TORCH_ARG(std::optional<double>, layer_scale) = std::nullopt;
  TORCH_ARG(double, drop_path) = 0;
};

// On maps [B, height, width, C].
class SwinBlockImpl : public torch::nn::Cloneable<SwinBlockImpl> {
 public:
  explicit SwinBlockImpl(const SwinBlockOptions& options_);

  void reset() override;
  torch::Tensor forward(const torch::Tensor& x);

  SwinBlockOptions options;
  nn::Norm norm1{nullptr};
  nn::WindowAttention attention{nullptr};
  nn::LayerScale layer_scale1{nullptr};
  nn::Norm norm2{nullptr};
  nn::Mlp mlp{nullptr};
  nn::LayerScale layer_scale2{nullptr};
  nn::DropPath drop_path{nullptr};

 private:
  torch::Tensor add(const torch::Tensor& x, const torch::Tensor& branch,
                    nn::LayerScale& scale);
};

TORCH_MODULE(SwinBlock);

// Two by two tokens become one: [B, height, width, C] -> [B, ceil(height / 2),
// ceil(width / 2), 2 C]; zeros fill up what is odd. The norm is of the 4 C that
// come in, or with post_norm of the 2 C that go out.
struct PatchMergingOptions {
  // NOLINTNEXTLINE(google-explicit-constructor): PatchMerging(96).
  PatchMergingOptions(std::int64_t dim) : dim_(dim) {}

  TORCH_ARG(std::int64_t, dim);
  TORCH_ARG(bool, post_norm) = false;
};

class PatchMergingImpl : public torch::nn::Cloneable<PatchMergingImpl> {
 public:
  explicit PatchMergingImpl(const PatchMergingOptions& options_);

  void reset() override;
  torch::Tensor forward(const torch::Tensor& x);

  PatchMergingOptions options;
  torch::nn::Linear reduction{nullptr};
  nn::Norm norm{nullptr};
};

TORCH_MODULE(PatchMerging);

struct SwinOptions {
  // Of each stage, whose width is dim times a power of two.
  SwinOptions(std::int64_t dim, std::vector<std::int64_t> depths,
              std::vector<std::int64_t> heads)
      : dim_(dim), depths_(std::move(depths)), heads_(std::move(heads)) {}

  TORCH_ARG(std::int64_t, dim);
  TORCH_ARG(std::vector<std::int64_t>, depths);
  TORCH_ARG(std::vector<std::int64_t>, heads);
  // 1, or 2: cosine scores, a bias of the scores that an mlp computes, and
  // norms at the ends of the branches.
  TORCH_ARG(std::int64_t, version) = 1;
  TORCH_ARG(std::int64_t, window) = 7;
  TORCH_ARG(std::int64_t, patch_size) = 4;
  TORCH_ARG(std::int64_t, channels) = 3;
  TORCH_ARG(std::int64_t, classes) = 1000;
  // The width of the mlp, as a multiple of that of the stage.
  TORCH_ARG(std::int64_t, mlp_ratio) = 4;
  // A formula (polyattn/activation.h).
  TORCH_ARG(std::string, activation) = "softmax";
  // Of the embedded patches, after the attention's projection, in the mlp.
  TORCH_ARG(double, dropout) = 0;
  // Of the attention weights.
  TORCH_ARG(double, attention_dropout) = 0;
  // The value at which the layer scales of all blocks begin. Default: none, as
  // in the published models.
  TORCH_ARG(std::optional<double>, layer_scale) = std::nullopt;
  // Of the last block; it grows linearly from 0 at the first.
  TORCH_ARG(double, drop_path) = 0;
  // polyattn/nn/initialise.h.
  TORCH_ARG(std::string, initialisation) = "vit";
  TORCH_ARG(double, qk_gain) = 1;
};

// swin-tiny, swin-small, swin-base, swin-v2-tiny, swin-v2-small, swin-v2-base
// (torchvision's), swin-tiny28 (grey, 28 pixels), swin-tiny32 (32 pixels),
// swin-v2-tiny28, swin-v2-tiny32. docs/models.md has their sizes.
SwinOptions swin_options(const std::string& name);
std::vector<std::string> swin_names();

class SwinImpl : public torch::nn::Cloneable<SwinImpl> {
 public:
  explicit SwinImpl(const SwinOptions& options_);

  void reset() override;

  // [B, channels, height, width] -> [B, classes]. Images of any size from one
  // window on; pixels that do not fill a patch are left out.
  torch::Tensor forward(const torch::Tensor& images);

  // What the head reads, the mean of the last map: [B, width of it].
  torch::Tensor features(const torch::Tensor& images);

  // N: those of a window.
  std::int64_t tokens() const { return options.window() * options.window(); }

  SwinOptions options;
  nn::PatchEmbedding patches{nullptr};
  nn::Norm patch_norm{nullptr};
  torch::nn::ModuleList stages{nullptr};   // of ModuleLists of blocks
  torch::nn::ModuleList merging{nullptr};  // after each stage but the last
  nn::Norm norm{nullptr};
  torch::nn::Linear head{nullptr};

 private:
  std::int64_t width_of(std::size_t stage) const;
  SwinBlockOptions block_options(std::size_t stage, std::int64_t block) const;
  void register_stages();
  torch::Tensor embed(const torch::Tensor& images);
};

TORCH_MODULE(Swin);

// Weights under the names of torchvision's SwinTransformer.
void load_torchvision(Swin& model, const NamedTensors& tensors);

// Under the names of timm, and of the files that came with the papers, which
// have the merging at the end of a stage and not at its beginning. Of version 2
// not those whose windows grew after a first training (`12to16`): their offsets
// are counted in windows of before.
void load_timm(Swin& model, const NamedTensors& tensors);

}  // namespace polyattn::models
