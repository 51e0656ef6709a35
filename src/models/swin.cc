#include "polyattn/models/swin.h"

#include <torch/utils.h>

#include <numeric>

#include "models/drop_path.h"
#include "models/named_options.h"
#include "nn/choice.h"
#include "polyattn/nn/initialise.h"

namespace polyattn::models {
namespace {

SwinOptions second(const SwinOptions& first, std::int64_t window) {
  return SwinOptions(first).version(2).window(window);
}

NamedOptions<SwinOptions> named_swins() {
  const SwinOptions tiny(96, {2, 2, 6, 2}, {3, 6, 12, 24});
  const SwinOptions small(96, {2, 2, 18, 2}, {3, 6, 12, 24});
  const SwinOptions base(128, {2, 2, 18, 2}, {4, 8, 16, 32});
  // Sides of 14 and 7 tokens, and of 16, 8 and 4: windows fill them.
  const SwinOptions tiny28 =
      SwinOptions(48, {2, 4}, {3, 6}).patch_size(2).channels(1).classes(10);
  const SwinOptions tiny32 =
      SwinOptions(32, {2, 4, 2}, {2, 4, 8}).patch_size(2).window(4).classes(10);
  return {{"swin-tiny", tiny},
          {"swin-small", small},
          {"swin-base", base},
          {"swin-v2-tiny", second(tiny, 8)},
          {"swin-v2-small", second(small, 8)},
          {"swin-v2-base", second(base, 8)},
          {"swin-tiny28", tiny28},
          {"swin-tiny32", tiny32},
          {"swin-v2-tiny28", second(tiny28, 7)},
          {"swin-v2-tiny32", second(tiny32, 4)}};
}

void check_swin(const SwinOptions& o) {
  TORCH_CHECK(!o.depths().empty(), "[Swin] depths are empty");
  TORCH_CHECK(o.depths().size() == o.heads().size(), "[Swin] depths of ",
              o.depths().size(), " stages, heads of ", o.heads().size());
  for (const std::int64_t depth : o.depths()) {
    TORCH_CHECK(depth > 0, "[Swin] depth ", depth, " < 1");
  }
  TORCH_CHECK(o.version() == 1 || o.version() == 2, "[Swin] version ",
              o.version(), " is neither 1 nor 2");
  TORCH_CHECK(o.classes() > 0, "[Swin] classes ", o.classes(), " < 1");
  nn::check_rate("Swin", "dropout", o.dropout());
  nn::check_rate("Swin", "drop_path", o.drop_path());
}

std::int64_t blocks_before(const SwinOptions& o, std::size_t stage) {
  const auto first = o.depths().begin();
  return std::accumulate(first, first + static_cast<std::ptrdiff_t>(stage),
                         std::int64_t{0});
}

}  // namespace

SwinOptions swin_options(const std::string& name) {
  return find_options("swin_options", named_swins(), name);
}

std::vector<std::string> swin_names() { return names_of(named_swins()); }

SwinImpl::SwinImpl(const SwinOptions& options_) : options(options_) {
  check_swin(options);
  SwinImpl::reset();
}

std::int64_t SwinImpl::width_of(std::size_t stage) const {
  return options.dim() << stage;
}

SwinBlockOptions SwinImpl::block_options(std::size_t stage,
                                         std::int64_t block) const {
  const std::int64_t width = width_of(stage);
  const auto attention = nn::WindowAttentionOptions(
                             width, options.heads()[stage], options.window())
                             .shift(block % 2 == 0 ? 0 : options.window() / 2)
                             .activation(options.activation())
                             .cosine(options.version() == 2)
                             .dropout(options.attention_dropout())
                             .projection_dropout(options.dropout());
  const auto mlp = nn::MlpOptions(width, options.mlp_ratio() * width)
                       .dropout(options.dropout());
  return SwinBlockOptions(attention, mlp)
      .post_norm(options.version() == 2)
      .layer_scale(options.layer_scale())
      .drop_path(drop_path_of(options.drop_path(),
                              blocks_before(options, stage) + block,
                              blocks_before(options, options.depths().size())));
}

void SwinImpl::register_stages() {
  stages = register_module("stages", torch::nn::ModuleList());
  merging = register_module("merging", torch::nn::ModuleList());
  for (std::size_t s = 0; s < options.depths().size(); ++s) {
    torch::nn::ModuleList blocks;
    for (std::int64_t i = 0; i < options.depths()[s]; ++i) {
      SwinBlock block(block_options(s, i));
      block->attention->stage = static_cast<std::int64_t>(s);
      blocks->push_back(block);
    }
    stages->push_back(blocks);
    if (s + 1 == options.depths().size()) break;
    merging->push_back(PatchMerging(
        PatchMergingOptions(width_of(s)).post_norm(options.version() == 2)));
  }
}

void SwinImpl::reset() {
  patches = register_module(
      "patches", nn::PatchEmbedding(nn::PatchEmbeddingOptions(
                                        options.patch_size(), options.dim())
                                        .channels(options.channels())));
  patch_norm = register_module("patch_norm", nn::Norm(options.dim()));
  register_stages();
  const std::int64_t last = width_of(options.depths().size() - 1);
  norm = register_module("norm", nn::Norm(last));
  head = register_module("head", torch::nn::Linear(last, options.classes()));
  nn::initialise(*this, nn::InitialiseOptions(options.initialisation())
                            .qk_gain(options.qk_gain()));
}

// [B, height, width, C], sides in patches.
torch::Tensor SwinImpl::embed(const torch::Tensor& images) {
  TORCH_CHECK(images.dim() == 4 && images.size(1) == options.channels(),
              "[Swin] images of size ", images.sizes(), " are not [B, ",
              options.channels(), ", height, width]");
  const std::int64_t p = options.patch_size();
  const std::int64_t height = images.size(2) / p, width = images.size(3) / p;
  TORCH_CHECK(height >= options.window() && width >= options.window(),
              "[Swin] images of ", images.size(2), " x ", images.size(3),
              " pixels are ", height, " x ", width,
              " patches, fewer than a window, ", options.window(), " x ",
              options.window());
  const auto whole = images.narrow(2, 0, height * p).narrow(3, 0, width * p);
  const torch::Tensor x = patch_norm->forward(patches->forward(whole));
  return torch::dropout(x.unflatten(1, {height, width}), options.dropout(),
                        is_training());
}

torch::Tensor SwinImpl::features(const torch::Tensor& images) {
  torch::Tensor x = embed(images);
  for (std::size_t s = 0; s < stages->size(); ++s) {
    for (const auto& block : stages->at<torch::nn::ModuleListImpl>(s)) {
      x = block->as<SwinBlockImpl>()->forward(x);
    }
    if (s < merging->size()) x = merging->at<PatchMergingImpl>(s).forward(x);
  }
  return norm->forward(x).mean({1, 2});
}

torch::Tensor SwinImpl::forward(const torch::Tensor& images) {
  return head->forward(features(images));
}

}  // namespace polyattn::models
