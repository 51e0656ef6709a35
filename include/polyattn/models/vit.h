// Vision transformer: patches, class token, learned positions, blocks, norm,
// head. With softmax it is torchvision's VisionTransformer.
//
//   ViT model(vit_options("tiny"));
//   torch::Tensor logits = model->forward(images);  // [B, 3, 224, 224]
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
#include "polyattn/nn/block.h"
#include "polyattn/nn/embedding.h"

namespace polyattn::models {

struct ViTOptions {
  ViTOptions(std::int64_t dim, std::int64_t depth, std::int64_t heads)
      : depth_(depth), block_(nn::BlockOptions(dim, heads).norm_eps(1e-6)) {}

  TORCH_ARG(std::int64_t, depth);
  // Width, heads, activation, mlp and all that concerns a layer. Its drop_path
  // and its grid are set by the model.
  TORCH_ARG(nn::BlockOptions, block);
  TORCH_ARG(std::int64_t, image_size) = 224;
  TORCH_ARG(std::int64_t, patch_size) = 16;
  TORCH_ARG(std::int64_t, channels) = 3;
  TORCH_ARG(std::int64_t, classes) = 1000;
  // What the head reads: class (the row of a class token) or mean (of all rows;
  // there is no class token then).
  TORCH_ARG(std::string, pooling) = "class";
  // A second token and a second head, which learn from a teacher (DeiT).
  TORCH_ARG(bool, distilled) = false;
  // Of the embedded patches.
  TORCH_ARG(double, dropout) = 0;
  // Of the last block; it grows linearly from 0 at the first.
  TORCH_ARG(double, drop_path) = 0;
  // polyattn/nn/initialise.h.
  TORCH_ARG(std::string, initialisation) = "vit";
  TORCH_ARG(double, qk_gain) = 1;

 public:
  ViTOptions& activation(const std::string& formula) {
    block_.attention().activation(formula);
    return *this;
  }
};

// tiny, small, base (224 pixels in patches of 16), tiny28 (grey, 28 pixels),
// tiny32 (32 pixels). docs/models.md has their sizes.
ViTOptions vit_options(const std::string& name);
std::vector<std::string> vit_names();

// The logits of the head that learns from labels and of the one that learns
// from a teacher, [B, classes] each.
struct DistilledLogits {
  torch::Tensor head, head_dist;
};

class ViTImpl : public torch::nn::Cloneable<ViTImpl> {
 public:
  explicit ViTImpl(const ViTOptions& options_);

  void reset() override;

  // [B, channels, image_size, image_size] -> [B, classes]; of a distilled model
  // the mean of its two logits.
  torch::Tensor forward(const torch::Tensor& images);

  // What a distilled model learns by.
  DistilledLogits distilled_logits(const torch::Tensor& images);

  // The rows that the head reads: [B, dim].
  torch::Tensor features(const torch::Tensor& images);

  // Rows of a sequence, and how many of them come before the patches.
  std::int64_t tokens() const;
  std::int64_t prefix() const;

  ViTOptions options;
  nn::PatchEmbedding patches{nullptr};
  nn::ClassToken class_token{nullptr};
  nn::ClassToken dist_token{nullptr};
  nn::PositionEmbedding positions{nullptr};
  torch::nn::ModuleList blocks{nullptr};
  nn::Norm norm{nullptr};
  torch::nn::Linear head{nullptr};
  torch::nn::Linear head_dist{nullptr};

 private:
  torch::Tensor rows(const torch::Tensor& images);
};

TORCH_MODULE(ViT);

// Weights under the names of torchvision's VisionTransformer, of today and of
// before 0.13 (mlp.linear_1).
void load_torchvision(ViT& model, const NamedTensors& tensors);

}  // namespace polyattn::models
