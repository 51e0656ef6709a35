#include "polyattn/models/deit.h"

#include "models/named_options.h"

namespace polyattn::models {
namespace {

NamedOptions<ViTOptions> named_deits() {
  NamedOptions<ViTOptions> list;
  for (const char* size : {"tiny", "small", "base", "tiny32"}) {
    list.emplace_back(size, vit_options(size));
    list.emplace_back(std::string(size) + "-distilled",
                      vit_options(size).distilled(true));
  }
  return list;
}

Mapping deit_mapping(const ViTOptions& options) {
  Mapping mapping;
  const auto one = [&](const std::string& theirs, const std::string& ours,
                       Layout layout = Layout::kSame) {
    mapping.tensors.push_back({theirs, ours, layout});
  };
  const auto both = [&](const std::string& theirs, const std::string& ours) {
    one(theirs + ".weight", ours + ".weight");
    one(theirs + ".bias", ours + ".bias");
  };
  if (options.pooling() == "class") one("cls_token", "class_token.weight");
  if (options.distilled()) one("dist_token", "dist_token.weight");
  one("pos_embed", "positions.weight", Layout::kLeadingOne);
  both("patch_embed.proj", "patches.proj");
  for (std::int64_t i = 0; i < options.depth(); ++i) {
    const std::string block = "blocks." + std::to_string(i);
    both(block + ".norm1", block + ".norm1");
    for (const char* part : {"weight", "bias"}) {
      one(block + ".attn.qkv." + part, block + ".attention.in_proj_" + part);
    }
    both(block + ".attn.proj", block + ".attention.out_proj");
    both(block + ".norm2", block + ".norm2");
    both(block + ".mlp.fc1", block + ".mlp.fc1");
    both(block + ".mlp.fc2", block + ".mlp.fc2");
  }
  both("norm", "norm");
  both("head", "head");
  if (options.distilled()) both("head_dist", "head_dist");
  return mapping;
}

}  // namespace

ViTOptions deit_options(const std::string& name) {
  return find_options("deit_options", named_deits(), name);
}

std::vector<std::string> deit_names() { return names_of(named_deits()); }

void load_deit(ViT& model, const NamedTensors& tensors) {
  load_mapped("load_deit", *model, tensors, deit_mapping(model->options));
}

}  // namespace polyattn::models
