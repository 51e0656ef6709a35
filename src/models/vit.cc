#include "polyattn/models/vit.h"

#include "models/drop_path.h"
#include "models/named_options.h"
#include "nn/choice.h"
#include "polyattn/nn/initialise.h"

namespace polyattn::models {
namespace {

NamedOptions<ViTOptions> named_vits() {
  return {
      {"tiny", ViTOptions(192, 12, 3)},
      {"small", ViTOptions(384, 12, 6)},
      {"base", ViTOptions(768, 12, 12)},
      {"tiny28",
       ViTOptions(64, 4, 4).image_size(28).patch_size(4).channels(1).classes(
           10)},
      {"tiny32",
       ViTOptions(192, 6, 3).image_size(32).patch_size(4).classes(10)},
  };
}

void check(const ViTOptions& o) {
  TORCH_CHECK(o.depth() > 0, "[ViT] depth ", o.depth(), " < 1");
  TORCH_CHECK(o.classes() > 0, "[ViT] classes ", o.classes(), " < 1");
  TORCH_CHECK(o.patch_size() > 0, "[ViT] patch_size ", o.patch_size(), " < 1");
  TORCH_CHECK(o.image_size() > 0 && o.image_size() % o.patch_size() == 0,
              "[ViT] image_size ", o.image_size(),
              " is no multiple of patch_size ", o.patch_size());
  nn::check_choice("ViT", "pooling", o.pooling(), {"class", "mean"});
  TORCH_CHECK(!o.distilled() || o.pooling() == "class", "[ViT] pooling \"",
              o.pooling(),
              "\", but a distilled model reads the rows of its tokens");
  nn::check_rate("ViT", "dropout", o.dropout());
  nn::check_rate("ViT", "drop_path", o.drop_path());
}

nn::BlockOptions block_options(const ViTOptions& o, std::int64_t i) {
  nn::BlockOptions block = o.block();
  block.drop_path(drop_path_of(o.drop_path(), i, o.depth()));
  const std::int64_t side = o.image_size() / o.patch_size();
  block.attention().grid(nn::Grid{side, side});
  return block;
}

Mapping torchvision_mapping(const ViTOptions& options,
                            const NamedTensors& tensors) {
  Mapping mapping;
  const auto both = [&](const std::string& theirs, const std::string& ours) {
    mapping.tensors.push_back({theirs + ".weight", ours + ".weight"});
    mapping.tensors.push_back({theirs + ".bias", ours + ".bias"});
  };
  const std::string layer = "encoder.layers.encoder_layer_";
  const bool old = tensors.contains(layer + "0.mlp.linear_1.weight");
  if (options.pooling() == "class") {
    mapping.tensors.push_back({"class_token", "class_token.weight"});
  }
  both("conv_proj", "patches.proj");
  mapping.tensors.push_back(
      {"encoder.pos_embedding", "positions.weight", Layout::kLeadingOne});
  for (std::int64_t i = 0; i < options.depth(); ++i) {
    const std::string theirs = layer + std::to_string(i);
    const std::string ours = "blocks." + std::to_string(i);
    both(theirs + ".ln_1", ours + ".norm1");
    for (const char* part : {"in_proj_weight", "in_proj_bias",
                             "out_proj.weight", "out_proj.bias"}) {
      mapping.tensors.push_back(
          {theirs + ".self_attention." + part, ours + ".attention." + part});
    }
    both(theirs + ".ln_2", ours + ".norm2");
    both(theirs + (old ? ".mlp.linear_1" : ".mlp.0"), ours + ".mlp.fc1");
    both(theirs + (old ? ".mlp.linear_2" : ".mlp.3"), ours + ".mlp.fc2");
  }
  both("encoder.ln", "norm");
  both("heads.head", "head");
  return mapping;
}

}  // namespace

ViTOptions vit_options(const std::string& name) {
  return find_options("vit_options", named_vits(), name);
}

std::vector<std::string> vit_names() { return names_of(named_vits()); }

ViTImpl::ViTImpl(const ViTOptions& options_) : options(options_) {
  check(options);
  ViTImpl::reset();
}

std::int64_t ViTImpl::tokens() const {
  const std::int64_t side = options.image_size() / options.patch_size();
  return side * side + prefix();
}

std::int64_t ViTImpl::prefix() const {
  return (options.pooling() == "class" ? 1 : 0) + (options.distilled() ? 1 : 0);
}

void ViTImpl::reset() {
  const std::int64_t dim = options.block().dim();
  patches = register_module(
      "patches",
      nn::PatchEmbedding(nn::PatchEmbeddingOptions(options.patch_size(), dim)
                             .channels(options.channels())));
  if (options.pooling() == "class") {
    class_token = register_module("class_token", nn::ClassToken(dim));
  }
  if (options.distilled()) {
    dist_token = register_module("dist_token", nn::ClassToken(dim));
  }
  positions = register_module(
      "positions", nn::PositionEmbedding(nn::TableOptions(tokens(), dim)));
  blocks = register_module("blocks", torch::nn::ModuleList());
  for (std::int64_t i = 0; i < options.depth(); ++i) {
    blocks->push_back(nn::Block(block_options(options, i)));
  }
  norm = register_module("norm", nn::Norm(options.block().norm_options()));
  head = register_module("head", torch::nn::Linear(dim, options.classes()));
  if (options.distilled()) {
    head_dist =
        register_module("head_dist", torch::nn::Linear(dim, options.classes()));
  }
  nn::initialise(*this, nn::InitialiseOptions(options.initialisation())
                            .qk_gain(options.qk_gain()));
}

torch::Tensor ViTImpl::rows(const torch::Tensor& images) {
  TORCH_CHECK(images.dim() == 4 && images.size(1) == options.channels() &&
                  images.size(2) == options.image_size() &&
                  images.size(3) == options.image_size(),
              "[ViT] images of size ", images.sizes(), " are not [B, ",
              options.channels(), ", ", options.image_size(), ", ",
              options.image_size(), "]");
  torch::Tensor x = patches->forward(images);
  if (dist_token) x = dist_token->forward(x);
  if (class_token) x = class_token->forward(x);
  x = torch::dropout(positions->forward(x), options.dropout(), is_training());
  for (const auto& block : *blocks) {
    x = block->as<nn::BlockImpl>()->forward(x);
  }
  return norm->forward(x);
}

torch::Tensor ViTImpl::features(const torch::Tensor& images) {
  const torch::Tensor x = rows(images);
  return class_token ? x.select(1, 0) : x.mean(1);
}

DistilledLogits ViTImpl::distilled_logits(const torch::Tensor& images) {
  TORCH_CHECK(dist_token,
              "[ViT] distilled_logits of a model that is not "
              "distilled");
  const torch::Tensor x = rows(images);
  return {head->forward(x.select(1, 0)), head_dist->forward(x.select(1, 1))};
}

torch::Tensor ViTImpl::forward(const torch::Tensor& images) {
  if (!options.distilled()) return head->forward(features(images));
  const DistilledLogits logits = distilled_logits(images);
  return (logits.head + logits.head_dist) / 2;
}

void load_torchvision(ViT& model, const NamedTensors& tensors) {
  load_mapped("load_torchvision", *model, tensors,
              torchvision_mapping(model->options, tensors));
}

}  // namespace polyattn::models
