// The names of GPT-2's weights.
#include "polyattn/models/gpt.h"

namespace polyattn::models {
namespace {

// Some files have it before all names but that of the output layer.
std::string prefix_of(const NamedTensors& tensors) {
  const std::string prefix = "transformer.";
  const auto first = tensors.lower_bound(prefix);
  const bool there = first != tensors.end() && first->first.starts_with(prefix);
  return there ? prefix : "";
}

void map_block(std::int64_t i, const std::string& prefix, Mapping& mapping) {
  const std::string theirs = prefix + "h." + std::to_string(i);
  const std::string ours = "blocks." + std::to_string(i);
  const auto add = [&](const std::string& from, const std::string& weight,
                       const std::string& bias, Layout layout) {
    mapping.tensors.push_back(
        {theirs + from + ".weight", ours + weight, layout});
    mapping.tensors.push_back({theirs + from + ".bias", ours + bias});
  };
  add(".ln_1", ".norm1.weight", ".norm1.bias", Layout::kSame);
  add(".attn.c_attn", ".attention.in_proj_weight", ".attention.in_proj_bias",
      Layout::kTransposed);
  add(".attn.c_proj", ".attention.out_proj.weight", ".attention.out_proj.bias",
      Layout::kTransposed);
  add(".ln_2", ".norm2.weight", ".norm2.bias", Layout::kSame);
  add(".mlp.c_fc", ".mlp.fc1.weight", ".mlp.fc1.bias", Layout::kTransposed);
  add(".mlp.c_proj", ".mlp.fc2.weight", ".mlp.fc2.bias", Layout::kTransposed);
  mapping.ignored.push_back(theirs + ".attn.bias");
  mapping.ignored.push_back(theirs + ".attn.masked_bias");
}

}  // namespace

void load_gpt2(Gpt& model, const NamedTensors& tensors) {
  const GptOptions& options = model->options;
  TORCH_CHECK(options.positions() == "learned",
              "[load_gpt2] positions of the model are \"", options.positions(),
              "\", those of GPT-2 \"learned\"");
  const std::string prefix = prefix_of(tensors);
  const std::string table = prefix + "wte.weight";
  Mapping mapping;
  mapping.tensors.push_back({table, "tokens.weight"});
  mapping.tensors.push_back({prefix + "wpe.weight", "positions.weight"});
  for (std::int64_t i = 0; i < options.depth(); ++i) {
    map_block(i, prefix, mapping);
  }
  mapping.tensors.push_back({prefix + "ln_f.weight", "norm.weight"});
  mapping.tensors.push_back({prefix + "ln_f.bias", "norm.bias"});
  if (options.tied()) {
    mapping.ignored.emplace_back("lm_head.weight");
    mapping.equal.emplace_back("lm_head.weight", table);
  } else {
    const bool given = tensors.contains("lm_head.weight");
    mapping.tensors.push_back(
        {given ? "lm_head.weight" : table, "head.weight"});
  }
  load_mapped("load_gpt2", *model, tensors, mapping);
}

}  // namespace polyattn::models
