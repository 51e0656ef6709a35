#include "train/run/models.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

#include "train/run/tasks.h"

namespace polyattn::run {
namespace {

using enum ModelFamily;

constexpr ModelSizes kTiny28 = {64, 4, 4, 256, 4};
constexpr ModelSizes kTiny32 = {192, 6, 3, 768, 4};
constexpr ModelSizes kTiny = {192, 12, 3, 768, 16};
constexpr ModelSizes kSmall = {384, 12, 6, 1536, 16};
constexpr ModelSizes kBase = {768, 12, 12, 3072, 16};

// Deep ones begin their branches near zero.
constexpr ModelSizes xcit(std::int64_t dim, std::int64_t depth,
                          std::int64_t heads, std::int64_t patch) {
  return {dim, depth, heads, 4 * dim, patch, depth > 12 ? 1e-5 : 1.0};
}

// Of so many pixels, that one window is full.
constexpr ModelSizes swin(std::int64_t dim, std::int64_t depth,
                          std::int64_t heads, std::int64_t patch,
                          std::int64_t window) {
  return {dim, depth, heads, 4 * dim, patch, 0, window * patch};
}

// The layers of Nystromformer's models for Long Range Arena.
constexpr ModelSizes lra(std::int64_t depth) {
  constexpr std::int64_t kPatch = 4;  // the default: it means nothing here
  return {64, depth, 2, 128, kPatch};
}

// XCiT has one head, which learns from labels and teacher alike.
constexpr ModelEntry kModels[] = {
    {"vit", kViT, kImages},
    {"gpt", kGpt, kLanguage},
    {"classifier", kClassifier, kSequences},
    {"pinnsformer", kPinnsformer, kPhysics},
    {"pinn", kPinn, kPhysics},
    {"lra", kClassifier, kSequences, false, lra(2)},
    {"lra-small", kClassifier, kSequences, false, lra(4)},
    {"lra-nystromformer", kClassifier, kSequences, false, lra(2),
     "nystromformer"},
    {"vit-distilled", kViT, kImages, true},
    {"vit-tiny28", kViT, kImages, false, kTiny28},
    {"vit-tiny32", kViT, kImages, false, kTiny32},
    {"vit-tiny", kViT, kImages, false, kTiny},
    {"vit-small", kViT, kImages, false, kSmall},
    {"vit-base", kViT, kImages, false, kBase},
    {"deit-tiny32", kViT, kImages, false, kTiny32},
    {"deit-tiny", kViT, kImages, false, kTiny},
    {"deit-small", kViT, kImages, false, kSmall},
    {"deit-base", kViT, kImages, false, kBase},
    {"deit-tiny32-distilled", kViT, kImages, true, kTiny32},
    {"deit-tiny-distilled", kViT, kImages, true, kTiny},
    {"deit-small-distilled", kViT, kImages, true, kSmall},
    {"deit-base-distilled", kViT, kImages, true, kBase},
    {"swin-tiny28", kSwin, kImages, false, swin(48, 6, 3, 2, 7), "swin-tiny28"},
    {"swin-tiny32", kSwin, kImages, false, swin(32, 8, 2, 2, 4), "swin-tiny32"},
    {"swin-t", kSwin, kImages, false, swin(96, 12, 3, 4, 7), "swin-tiny"},
    {"swin-s", kSwin, kImages, false, swin(96, 24, 3, 4, 7), "swin-small"},
    {"swin-b", kSwin, kImages, false, swin(128, 24, 4, 4, 7), "swin-base"},
    {"swin-v2-tiny28", kSwin, kImages, false, swin(48, 6, 3, 2, 7),
     "swin-v2-tiny28"},
    {"swin-v2-tiny32", kSwin, kImages, false, swin(32, 8, 2, 2, 4),
     "swin-v2-tiny32"},
    {"swin-v2-t", kSwin, kImages, false, swin(96, 12, 3, 4, 8), "swin-v2-tiny"},
    {"swin-v2-s", kSwin, kImages, false, swin(96, 24, 3, 4, 8),
     "swin-v2-small"},
    {"swin-v2-b", kSwin, kImages, false, swin(128, 24, 4, 4, 8),
     "swin-v2-base"},
    {"xcit-tiny28", kXCiT, kImages, true, xcit(96, 4, 4, 4), "tiny28"},
    {"xcit-tiny32", kXCiT, kImages, true, xcit(96, 4, 4, 4), "tiny32"},
    {"xcit-nano-12-p16", kXCiT, kImages, true, xcit(128, 12, 4, 16),
     "nano_12_p16"},
    {"xcit-tiny-12-p16", kXCiT, kImages, true, xcit(192, 12, 4, 16),
     "tiny_12_p16"},
    {"xcit-tiny-24-p16", kXCiT, kImages, true, xcit(192, 24, 4, 16),
     "tiny_24_p16"},
    {"xcit-small-12-p16", kXCiT, kImages, true, xcit(384, 12, 8, 16),
     "small_12_p16"},
    {"xcit-small-24-p16", kXCiT, kImages, true, xcit(384, 24, 8, 16),
     "small_24_p16"},
    {"xcit-medium-24-p16", kXCiT, kImages, true, xcit(512, 24, 8, 16),
     "medium_24_p16"},
    {"xcit-large-24-p16", kXCiT, kImages, true, xcit(768, 24, 16, 16),
     "large_24_p16"},
    {"xcit-nano-12-p8", kXCiT, kImages, true, xcit(128, 12, 4, 8),
     "nano_12_p8"},
    {"xcit-tiny-12-p8", kXCiT, kImages, true, xcit(192, 12, 4, 8),
     "tiny_12_p8"},
    {"xcit-tiny-24-p8", kXCiT, kImages, true, xcit(192, 24, 4, 8),
     "tiny_24_p8"},
    {"xcit-small-12-p8", kXCiT, kImages, true, xcit(384, 12, 8, 8),
     "small_12_p8"},
    {"xcit-small-24-p8", kXCiT, kImages, true, xcit(384, 24, 8, 8),
     "small_24_p8"},
    {"xcit-medium-24-p8", kXCiT, kImages, true, xcit(512, 24, 8, 8),
     "medium_24_p8"},
    {"xcit-large-24-p8", kXCiT, kImages, true, xcit(768, 24, 16, 8),
     "large_24_p8"},
};

// Of the section [model], what the sizes are made of.
constexpr std::array<std::string_view, 5> kSizeKeys = {"dim", "depth", "heads",
                                                       "mlp", "patch"};

// All that Swin and XCiT leave open.
constexpr std::array<std::string_view, 9> kOpenKeys = {
    "name",    "activation", "initialisation",    "start",    "start_factor",
    "qk_gain", "dropout",    "attention_dropout", "drop_path"};

// What the baseline without attention leaves open.
constexpr std::array<std::string_view, 4> kPinnKeys = {"name", "depth", "mlp",
                                                       "initialisation"};

// What Nystromformer's models have of their own.
constexpr std::array<std::string_view, 4> kPublishedKeys = {
    "pooling", "head", "mask_zeros", "positions"};

void take_published(ModelConfig& config) {
  config.pooling = "padded";
  config.head = "mlp";
  config.mask_zeros = true;
  config.positions = "learned";
  config.dropout = config.attention_dropout = 0.1;
}

template <typename Keys>
bool is_one_of(std::string_view key, const Keys& keys) {
  return std::find(std::begin(keys), std::end(keys), key) != std::end(keys);
}

}  // namespace

std::span<const ModelEntry> models() { return kModels; }

const ModelEntry* find_model(std::string_view name) {
  const auto* const found =
      std::find_if(std::begin(kModels), std::end(kModels),
                   [&](const ModelEntry& model) { return model.name == name; });
  return found == std::end(kModels) ? nullptr : found;
}

const ModelEntry* default_model(unsigned kind) {
  return std::find_if(
      std::begin(kModels), std::end(kModels),
      [&](const ModelEntry& model) { return (model.tasks & kind) != 0; });
}

bool heeds(const ModelEntry& model, std::string_view key) {
  // XCiT has layer scales in any case, of its own.
  if (model.family == kSwin && key == "layer_scale") return true;
  if (model.family == kSwin || model.family == kXCiT) {
    return is_one_of(key, kOpenKeys);
  }
  if (model.family == kPinn) return is_one_of(key, kPinnKeys);
  if (model.is_named_size() && is_one_of(key, kSizeKeys)) return false;
  if (model.family == kClassifier && !model.options.empty()) {
    return !is_one_of(key, kPublishedKeys);
  }
  // Two heads read rows of their own.
  return !(model.distilled && key == "pooling");
}

void apply_model(const ModelEntry& model, ModelConfig& config) {
  config.name = model.name;
  if (model.family == kPinn) {  // Linear layers, and how wide they are
    config.depth = 4;
    config.mlp = 512;
  }
  if (model.family == kClassifier && !model.options.empty()) {
    take_published(config);
  } else if (model.family != kClassifier &&
             (model.distilled || model.is_named_size())) {
    config.pooling = model.family == kSwin ? "mean" : "class";
  }
  if (!model.is_named_size()) return;
  config.dim = model.sizes.dim;
  config.depth = model.sizes.depth;
  config.heads = model.sizes.heads;
  config.mlp = model.sizes.mlp;
  config.patch = model.sizes.patch;
  config.layer_scale = model.sizes.layer_scale;
}

LraTask lra_task(unsigned kind) {
  switch (kind) {
    case kListOps:
      return {"listops", 2048};
    case kImdb:
      return {"text", 4096};
    case kPixels:
      return {"image", 1024};
    case kPathfinder:
      return {"pathfinder", 1024};
    default:
      return {"retrieval", 4096};
  }
}

std::string model_names(unsigned tasks) {
  std::vector<std::string_view> names;
  for (const ModelEntry& model : kModels) {
    if ((model.tasks & tasks) != 0) names.push_back(model.name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace polyattn::run
