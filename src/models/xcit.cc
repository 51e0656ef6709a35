#include "polyattn/models/xcit.h"

#include "models/named_options.h"
#include "nn/choice.h"
#include "polyattn/nn/initialise.h"

namespace polyattn::models {
namespace {

// Deep models begin their branches near zero.
XCiTOptions xcit_size(std::int64_t dim, std::int64_t depth,
                      std::int64_t heads) {
  XCiTOptions options(dim, depth, heads);
  if (depth > 12) options.block().layer_scale(1e-5);
  return options;
}

NamedOptions<XCiTOptions> named_xcits() {
  NamedOptions<XCiTOptions> list;
  for (const std::int64_t patch : {16, 8}) {
    const auto add = [&](const std::string& name, const XCiTOptions& size) {
      list.emplace_back(name + "_p" + std::to_string(patch),
                        XCiTOptions(size).patch_size(patch));
    };
    add("nano_12", xcit_size(128, 12, 4).tokens_norm(false));
    add("tiny_12", xcit_size(192, 12, 4));
    add("tiny_24", xcit_size(192, 24, 4));
    add("small_12", xcit_size(384, 12, 8));
    add("small_24", xcit_size(384, 24, 8));
    add("medium_24", xcit_size(512, 24, 8));
    add("large_24", xcit_size(768, 24, 16));
  }
  const auto small = xcit_size(96, 4, 4).patch_size(4).classes(10);
  list.emplace_back("tiny28", XCiTOptions(small).image_size(28).channels(1));
  list.emplace_back("tiny32", XCiTOptions(small).image_size(32));
  return list;
}

void check_xcit(const XCiTOptions& o) {
  TORCH_CHECK(o.depth() > 0, "[XCiT] depth ", o.depth(), " < 1");
  TORCH_CHECK(o.class_depth() > 0, "[XCiT] class_depth ", o.class_depth(),
              " < 1");
  TORCH_CHECK(o.classes() > 0, "[XCiT] classes ", o.classes(), " < 1");
  TORCH_CHECK(o.patch_size() > 0, "[XCiT] patch_size ", o.patch_size(), " < 1");
  TORCH_CHECK(o.image_size() > 0 && o.image_size() % o.patch_size() == 0,
              "[XCiT] image_size ", o.image_size(),
              " is no multiple of patch_size ", o.patch_size());
  nn::check_rate("XCiT", "dropout", o.dropout());
}

}  // namespace

XCiTOptions xcit_options(const std::string& name) {
  return find_options("xcit_options", named_xcits(), name);
}

std::vector<std::string> xcit_names() { return names_of(named_xcits()); }

XCiTImpl::XCiTImpl(const XCiTOptions& options_) : options(options_) {
  check_xcit(options);
  XCiTImpl::reset();
}

std::int64_t XCiTImpl::tokens() const {
  const std::int64_t side = options.image_size() / options.patch_size();
  return side * side + 1;
}

void XCiTImpl::reset() {
  const nn::XcaBlockOptions& block = options.block();
  const std::int64_t dim = block.dim();
  patches = register_module(
      "patches",
      nn::ConvPatchEmbedding(nn::ConvPatchOptions(options.patch_size(), dim)
                                 .channels(options.channels())));
  positions = register_module("positions", nn::FourierPositions(dim));
  blocks = register_module("blocks", torch::nn::ModuleList());
  for (std::int64_t i = 0; i < options.depth(); ++i) {
    blocks->push_back(nn::XcaBlock(block));
  }
  class_token =
      register_module("class_token", nn::ClassToken(dim, /*alone=*/true));
  class_blocks = register_module("class_blocks", torch::nn::ModuleList());
  for (std::int64_t i = 0; i < options.class_depth(); ++i) {
    class_blocks->push_back(nn::ClassBlock(block, options.tokens_norm()));
  }
  norm = register_module("norm", nn::Norm(block.norm_options()));
  head = register_module("head", torch::nn::Linear(dim, options.classes()));
  nn::initialise(*this, nn::InitialiseOptions(options.initialisation())
                            .qk_gain(options.qk_gain()));
}

torch::Tensor XCiTImpl::features(const torch::Tensor& images) {
  torch::Tensor x = patches->forward(images);
  const nn::Grid grid = patches->grid(images.size(2), images.size(3));
  x = torch::dropout(positions->forward(x, grid), options.dropout(),
                     is_training());
  for (const auto& block : *blocks) {
    x = block->as<nn::XcaBlockImpl>()->forward(x, grid);
  }
  x = class_token->forward(x);
  for (const auto& block : *class_blocks) {
    x = block->as<nn::ClassBlockImpl>()->forward(x);
  }
  return norm->forward(x).select(1, 0);
}

torch::Tensor XCiTImpl::forward(const torch::Tensor& images) {
  return head->forward(features(images));
}

}  // namespace polyattn::models
