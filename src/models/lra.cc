#include "polyattn/models/lra.h"

#include "models/join_projections.h"
#include "models/named_options.h"

namespace polyattn::models {
namespace {

constexpr double kDropout = 0.1;

SequenceClassifierOptions lra_task(std::int64_t vocabulary,
                                   std::int64_t positions, std::int64_t classes,
                                   std::int64_t towers = 1) {
  SequenceClassifierOptions options = classifier_options("lra");
  options.vocabulary(vocabulary)
      .context(positions)
      .classes(classes)
      .towers(towers)
      .head("mlp")
      .pooling("padded")
      .mask_zeros(true)
      .dropout(kDropout);
  options.block().dropout(kDropout).attention().dropout(kDropout);
  return options;
}

NamedOptions<SequenceClassifierOptions> lra_tasks() {
  return {{"listops", lra_task(32, 2048, 10)},
          {"text", lra_task(512, 4096, 2)},
          {"retrieval", lra_task(512, 4096, 2, 2)},
          {"image", lra_task(512, 1024, 10)},
          {"pathfinder", lra_task(512, 1024, 2)}};
}

class LraMapping {
 public:
  Mapping mapping;

  void add(const std::string& theirs, const std::string& ours) {
    mapping.tensors.push_back({theirs, ours});
  }
  void add_both(const std::string& theirs, const std::string& ours) {
    add(theirs + ".weight", ours + ".weight");
    add(theirs + ".bias", ours + ".bias");
  }
  void add_block(const std::string& theirs, const std::string& ours) {
    add_both(theirs + ".norm1", ours + ".norm1");
    add(theirs + ".mha.W_qkv.weight", ours + ".attention.in_proj_weight");
    add(theirs + ".mha.W_qkv.bias", ours + ".attention.in_proj_bias");
    add_both(theirs + ".mha.ff", ours + ".attention.out_proj");
    add_both(theirs + ".norm2", ours + ".norm2");
    add_both(theirs + ".mlpblock.0", ours + ".mlp.fc1");
    add_both(theirs + ".mlpblock.3", ours + ".mlp.fc2");
  }
};

std::string block_name(std::int64_t i) {
  return "model.transformer_" + std::to_string(i);
}

// The name of the head is spelt so in the files.
Mapping lra_mapping(const SequenceClassifierOptions& options) {
  LraMapping m;
  m.add("model.embeddings.word_embeddings.weight", "tokens.weight");
  m.add("model.embeddings.position_embeddings.weight", "positions.weight");
  for (std::int64_t i = 0; i < options.depth(); ++i) {
    const std::string ours = "blocks." + std::to_string(i);
    m.add_block(block_name(i), ours);
    if (options.block().nystrom() && options.block().nystrom()->conv() > 0) {
      m.add(block_name(i) + ".mha.attn.conv.weight",
            ours + ".attention.conv_weight");
    }
  }
  m.add_both("model.norm", "norm");
  m.add_both("seq_classifer.mlpblock.0", "head_hidden");
  m.add_both("seq_classifer.mlpblock.2", "head");
  return std::move(m.mapping);
}

NamedTensors with_one_projection(NamedTensors tensors, std::int64_t depth) {
  for (std::int64_t i = 0; i < depth; ++i) {
    const std::string before = block_name(i) + ".mha.W_";
    for (const std::string part : {".weight", ".bias"}) {
      join_projections(
          tensors,
          {before + "q" + part, before + "k" + part, before + "v" + part},
          before + "qkv" + part);
    }
  }
  return tensors;
}

}  // namespace

SequenceClassifierOptions lra_options(const std::string& task) {
  return find_options("lra_options", lra_tasks(), task);
}

std::vector<std::string> lra_names() { return names_of(lra_tasks()); }

void load_lra(SequenceClassifier& model, const NamedTensors& tensors) {
  const SequenceClassifierOptions& options = model->options;
  TORCH_CHECK(options.positions() == "learned",
              "[load_lra] positions of the model are \"", options.positions(),
              "\", those of Nystromformer \"learned\"");
  TORCH_CHECK(options.head() == "mlp", "[load_lra] the head of the model is \"",
              options.head(), "\", that of Nystromformer \"mlp\"");
  TORCH_CHECK(options.pooling() != "class",
              "[load_lra] pooling of the model is \"class\": Nystromformer has "
              "no class token");
  load_mapped("load_lra", *model, with_one_projection(tensors, options.depth()),
              lra_mapping(options));
}

}  // namespace polyattn::models
