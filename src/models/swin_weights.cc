// The names of Swin's weights elsewhere.
#include <functional>

#include "models/join_projections.h"
#include "nn/windows.h"
#include "polyattn/models/swin.h"

namespace polyattn::models {
namespace {

// What each library calls its own way.
struct SwinNames {
  std::string patches, patch_norm, fc1, fc2, head;
  std::function<std::string(std::size_t stage, std::int64_t block)> block;
  std::function<std::string(std::size_t stage)> merging;  // after that stage
};

void map_both(const std::string& theirs, const std::string& ours,
              Mapping& mapping) {
  mapping.tensors.push_back({theirs + ".weight", ours + ".weight"});
  mapping.tensors.push_back({theirs + ".bias", ours + ".bias"});
}

void map_attention(const SwinOptions& options, const std::string& theirs,
                   const std::string& ours, Mapping& mapping) {
  mapping.tensors.push_back({theirs + ".qkv.weight", ours + ".in_proj_weight"});
  mapping.tensors.push_back({theirs + ".qkv.bias", ours + ".in_proj_bias"});
  map_both(theirs + ".proj", ours + ".out_proj", mapping);
  mapping.known.emplace_back(theirs + ".relative_position_index",
                             nn::offset_index(options.window()));
  if (options.version() == 1) {
    mapping.tensors.push_back(
        {theirs + ".relative_position_bias_table", ours + ".bias_table"});
    return;
  }
  mapping.tensors.push_back({theirs + ".logit_scale", ours + ".logit_scale"});
  map_both(theirs + ".cpb_mlp.0", ours + ".bias_fc1", mapping);
  mapping.tensors.push_back(
      {theirs + ".cpb_mlp.2.weight", ours + ".bias_fc2.weight"});
  mapping.known.emplace_back(theirs + ".relative_coords_table",
                             nn::log_offsets(options.window()));
}

Mapping swin_mapping(const SwinOptions& options, const SwinNames& names) {
  Mapping mapping;
  map_both(names.patches, "patches.proj", mapping);
  map_both(names.patch_norm, "patch_norm", mapping);
  for (std::size_t s = 0; s < options.depths().size(); ++s) {
    for (std::int64_t i = 0; i < options.depths()[s]; ++i) {
      const std::string theirs = names.block(s, i);
      const std::string ours =
          "stages." + std::to_string(s) + '.' + std::to_string(i);
      map_both(theirs + ".norm1", ours + ".norm1", mapping);
      map_attention(options, theirs + ".attn", ours + ".attention", mapping);
      map_both(theirs + ".norm2", ours + ".norm2", mapping);
      map_both(theirs + names.fc1, ours + ".mlp.fc1", mapping);
      map_both(theirs + names.fc2, ours + ".mlp.fc2", mapping);
      mapping.ignored.push_back(theirs + ".attn_mask");
    }
    if (s + 1 == options.depths().size()) break;
    const std::string ours = "merging." + std::to_string(s);
    map_both(names.merging(s) + ".norm", ours + ".norm", mapping);
    mapping.tensors.push_back(
        {names.merging(s) + ".reduction.weight", ours + ".reduction.weight"});
  }
  map_both("norm", "norm", mapping);
  map_both(names.head, "head", mapping);
  return mapping;
}

// Version 2 has biases of q and v there and none of k, which ours does not read
// either.
NamedTensors with_joint_biases(const SwinOptions& options,
                               const NamedTensors& tensors,
                               const SwinNames& names) {
  NamedTensors joint = tensors;
  for (std::size_t s = 0; s < options.depths().size(); ++s) {
    for (std::int64_t i = 0; i < options.depths()[s]; ++i) {
      const std::string attn = names.block(s, i) + ".attn.";
      const auto q = joint.find(attn + "q_bias");
      if (q == joint.end()) continue;  // which loading then says
      joint[attn + "k_bias"] = torch::zeros_like(q->second);
      join_projections(joint,
                       {attn + "q_bias", attn + "k_bias", attn + "v_bias"},
                       attn + "qkv.bias");
    }
  }
  return joint;
}

}  // namespace

void load_torchvision(Swin& model, const NamedTensors& tensors) {
  const auto feature = [](std::size_t i) {
    return "features." + std::to_string(i);
  };
  const SwinNames names = {
      .patches = "features.0.0",
      .patch_norm = "features.0.2",
      .fc1 = ".mlp.0",
      .fc2 = ".mlp.3",
      .head = "head",
      .block =
          [&](std::size_t s, std::int64_t i) {
            return feature(2 * s + 1) + '.' + std::to_string(i);
          },
      .merging = [&](std::size_t s) { return feature(2 * s + 2); }};
  load_mapped("load_torchvision", *model, tensors,
              swin_mapping(model->options, names));
}

void load_timm(Swin& model, const NamedTensors& tensors) {
  const auto layer = [](std::size_t i) {
    return "layers." + std::to_string(i);
  };
  const bool at_end =
      tensors.contains(layer(0) + ".downsample.reduction.weight");
  const SwinNames names = {
      .patches = "patch_embed.proj",
      .patch_norm = "patch_embed.norm",
      .fc1 = ".mlp.fc1",
      .fc2 = ".mlp.fc2",
      .head = tensors.contains("head.weight") ? "head" : "head.fc",
      .block =
          [&](std::size_t s, std::int64_t i) {
            return layer(s) + ".blocks." + std::to_string(i);
          },
      .merging =
          [&](std::size_t s) {
            return layer(at_end ? s : s + 1) + ".downsample";
          }};
  const SwinOptions& options = model->options;
  load_mapped("load_timm", *model,
              options.version() == 1
                  ? tensors
                  : with_joint_biases(options, tensors, names),
              swin_mapping(options, names));
}

}  // namespace polyattn::models
