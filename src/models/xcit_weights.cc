// The names of facebookresearch/xcit, and of timm.
#include <array>
#include <initializer_list>

#include "models/join_projections.h"
#include "polyattn/models/xcit.h"

namespace polyattn::models {
namespace {

using Parts = std::initializer_list<const char*>;

constexpr Parts kBoth = {"weight", "bias"};
constexpr Parts kBatchNorm = {"weight", "bias", "running_mean", "running_var",
                              "num_batches_tracked"};

class XcitMapping {
 public:
  Mapping mapping;

  void add(const std::string& theirs, const std::string& ours,
           Layout layout = Layout::kSame) {
    mapping.tensors.push_back({theirs, ours, layout});
  }

  void add_parts(const std::string& theirs, const std::string& ours,
                 Parts parts = kBoth) {
    for (const std::string part : parts) {
      add(theirs + '.' + part, ours + '.' + part);
    }
  }

  // What both kinds of block have.
  void add_block(const std::string& theirs, const std::string& ours) {
    for (const std::string norm : {".norm1", ".norm2"}) {
      add_parts(theirs + norm, ours + norm);
    }
    add(theirs + ".attn.qkv.weight", ours + ".attention.in_proj_weight");
    add(theirs + ".attn.qkv.bias", ours + ".attention.in_proj_bias");
    add_parts(theirs + ".attn.proj", ours + ".attention.out_proj");
    add_parts(theirs + ".mlp.fc1", ours + ".mlp.fc1");
    add_parts(theirs + ".mlp.fc2", ours + ".mlp.fc2");
    add(theirs + ".gamma1", ours + ".layer_scale1.weight");
    add(theirs + ".gamma2", ours + ".layer_scale2.weight");
  }

  void add_patch_block(const std::string& name) {
    add_block(name, name);
    add(name + ".attn.temperature", name + ".attention.temperature",
        Layout::kTrailingOnes);
    add_parts(name + ".norm3", name + ".norm3");
    add(name + ".gamma3", name + ".layer_scale3.weight");
    add_parts(name + ".local_mp.conv1", name + ".local.conv1");
    add_parts(name + ".local_mp.bn", name + ".local.norm", kBatchNorm);
    add_parts(name + ".local_mp.conv2", name + ".local.conv2");
  }
};

Mapping xcit_mapping(const XCiTImpl& model, const NamedTensors& tensors) {
  XcitMapping m;
  for (std::size_t i = 0; i < model.patches->convs->size(); ++i) {
    const std::string theirs = "patch_embed.proj." + std::to_string(2 * i);
    const std::string ours = std::to_string(i);
    m.add(theirs + ".0.weight", "patches.convs." + ours + ".weight");
    m.add_parts(theirs + ".1", "patches.norms." + ours, kBatchNorm);
  }
  const bool timm = tensors.contains("pos_embed.token_projection.weight");
  m.add_parts(
      timm ? "pos_embed.token_projection" : "pos_embeder.token_projection",
      "positions.projection");
  m.add("cls_token", "class_token.weight");
  for (std::int64_t i = 0; i < model.options.depth(); ++i) {
    m.add_patch_block("blocks." + std::to_string(i));
  }
  for (std::int64_t i = 0; i < model.options.class_depth(); ++i) {
    m.add_block("cls_attn_blocks." + std::to_string(i),
                "class_blocks." + std::to_string(i));
  }
  m.add_parts("norm", "norm");
  m.add_parts("head", "head");
  return std::move(m.mapping);
}

// Of the class attention: qkv where there are q, k and v of one shape.
NamedTensors with_joint_projections(NamedTensors tensors, std::int64_t depth) {
  for (std::int64_t i = 0; i < depth; ++i) {
    const std::string before =
        "cls_attn_blocks." + std::to_string(i) + ".attn.";
    for (const std::string part : kBoth) {
      join_projections(
          tensors,
          {before + "q." + part, before + "k." + part, before + "v." + part},
          before + "qkv." + part);
    }
  }
  return tensors;
}

}  // namespace

void load_xcit(XCiT& model, const NamedTensors& tensors) {
  const NamedTensors joint =
      with_joint_projections(tensors, model->options.class_depth());
  load_mapped("load_xcit", *model, joint, xcit_mapping(*model, joint));
}

}  // namespace polyattn::models
