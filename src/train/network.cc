#include "train/network.h"

#include <torch/version.h>

#include <cstdlib>
#include <utility>

#include "polyattn/models/classifier.h"
#include "polyattn/models/gpt.h"
#include "polyattn/models/lra.h"
#include "polyattn/models/swin.h"
#include "polyattn/models/vit.h"
#include "polyattn/models/xcit.h"
#include "train/physics_task.h"
#include "train/random.h"
#include "train/run/models.h"
#include "train/run/tasks.h"

namespace polyattn::train {
namespace {

// What the three models have in common.
void set_block(const run::ModelConfig& model, nn::BlockOptions& block) {
  nn::AttentionOptions& attention = block.attention();
  attention.activation(model.activation)
      .qk_norm(model.qk_norm)
      .learned_scale(model.learned_scale)
      .learned_coefficients(model.learned_coefficients)
      .output_norm(model.output_norm)
      .output_gate(model.output_gate)
      .center_values(model.center_values)
      .decay(model.decay)
      .short_conv(model.short_conv)
      .window(model.window)
      .norm_clamp(model.norm_clamp)
      .norm_factor(model.norm_factor)
      .dropout(model.attention_dropout);
  if (model.kv_heads > 0) attention.kv_heads(model.kv_heads);
  block.norm(model.norm).dropout(model.dropout);
  block.mlp().hidden(model.mlp);
  if (model.layer_scale > 0) block.layer_scale(model.layer_scale);
  if (model.attention == "nystrom") {
    block.nystrom(nn::NystromOptions()
                      .landmarks(model.landmarks)
                      .conv(model.landmark_conv)
                      .inverse(model.landmark_inverse)
                      .scaling(model.landmark_scaling));
  }
}

template <typename Model>
class ImageNetwork : public Network {
 public:
  template <typename Options>
  explicit ImageNetwork(const Options& options) : model_(options) {}
  torch::nn::Module& module() override { return *model_; }
  torch::Tensor logits(const Batch& batch) override {
    return model_->forward(batch.inputs);
  }
  std::int64_t tokens() const override { return model_->tokens(); }

 protected:
  Model model_;
};

class ViTNetwork : public ImageNetwork<models::ViT> {
 public:
  using ImageNetwork::ImageNetwork;
  models::DistilledLogits distilled_logits(const Batch& batch) override {
    return model_->options.distilled() ? model_->distilled_logits(batch.inputs)
                                       : Network::distilled_logits(batch);
  }
  std::int64_t prefix() const override { return model_->prefix(); }
};

// Its attentions are over channels and over rows: each has an N of its own.
class XCiTNetwork : public ImageNetwork<models::XCiT> {
 public:
  using ImageNetwork::ImageNetwork;
  std::int64_t tokens() const override { return 0; }
};

class TextNetwork : public Network {
 public:
  explicit TextNetwork(const models::GptOptions& options) : model_(options) {}
  torch::nn::Module& module() override { return *model_; }
  torch::Tensor logits(const Batch& batch) override {
    return model_->forward(batch.inputs).flatten(0, 1);
  }
  std::int64_t tokens() const override { return model_->options.context(); }

 private:
  models::Gpt model_;
};

class SequenceNetwork : public Network {
 public:
  SequenceNetwork(const models::SequenceClassifierOptions& options,
                  std::int64_t tokens)
      : model_(options), tokens_(tokens) {}
  torch::nn::Module& module() override { return *model_; }
  torch::Tensor logits(const Batch& batch) override {
    const std::int64_t towers = model_->options.towers();
    TORCH_CHECK(batch.inputs.size(0) == towers * batch.targets.size(0),
                "[train] a batch has ", batch.inputs.size(0), " sequences for ",
                batch.targets.size(0), " examples, but the model reads ",
                towers, " for each");
    return model_->forward(batch.inputs, batch.lengths);
  }
  std::int64_t tokens() const override { return tokens_; }
  std::int64_t prefix() const override { return model_->class_token ? 1 : 0; }

 private:
  models::SequenceClassifier model_;
  std::int64_t tokens_;
};

std::unique_ptr<Network> vit_network(const run::ModelConfig& model,
                                     const TaskShape& shape) {
  models::ViTOptions options(model.dim, model.depth, model.heads);
  options.image_size(shape.image_size)
      .patch_size(model.patch)
      .channels(shape.channels)
      .classes(shape.classes)
      .pooling(model.pooling)
      .distilled(run::find_model(model.name)->distilled)
      .dropout(model.dropout)
      .drop_path(model.drop_path)
      .initialisation(model.initialisation)
      .qk_gain(model.qk_gain);
  set_block(model, options.block());
  return std::make_unique<ViTNetwork>(options);
}

std::unique_ptr<Network> swin_network(const run::ModelConfig& model,
                                      const run::ModelEntry& entry,
                                      const TaskShape& shape) {
  models::SwinOptions options =
      models::swin_options(std::string(entry.options));
  options.channels(shape.channels)
      .classes(shape.classes)
      .activation(model.activation)
      .dropout(model.dropout)
      .attention_dropout(model.attention_dropout)
      .drop_path(model.drop_path)
      .initialisation(model.initialisation)
      .qk_gain(model.qk_gain);
  if (model.layer_scale > 0) options.layer_scale(model.layer_scale);
  return std::make_unique<ImageNetwork<models::Swin>>(options);
}

std::unique_ptr<Network> xcit_network(const run::ModelConfig& model,
                                      const run::ModelEntry& entry,
                                      const TaskShape& shape) {
  models::XCiTOptions options =
      models::xcit_options(std::string(entry.options));
  options.image_size(shape.image_size)
      .channels(shape.channels)
      .classes(shape.classes)
      .dropout(model.dropout)
      .initialisation(model.initialisation)
      .qk_gain(model.qk_gain);
  nn::XcaBlockOptions& block = options.block();
  block.drop_path(model.drop_path).dropout(model.dropout);
  block.attention()
      .activation(model.activation)
      .dropout(model.attention_dropout);
  return std::make_unique<XCiTNetwork>(options);
}

// How many tokens and positions the published models have, whatever the data.
void take_published_tables(const TaskShape& shape, const std::string& task,
                           models::SequenceClassifierOptions& options) {
  const auto theirs = models::lra_options(
      std::string(run::lra_task(run::find_task(task)->kind).name));
  TORCH_CHECK(shape.vocabulary <= theirs.vocabulary(), "[train] ", task,
              " has ", shape.vocabulary, " tokens, but lra-nystromformer ",
              theirs.vocabulary());
  TORCH_CHECK(shape.length <= theirs.context(), "[train] a sequence of ",
              shape.length, " tokens is longer than the ", theirs.context(),
              " positions that lra-nystromformer has of ", task);
  options.vocabulary(theirs.vocabulary()).context(theirs.context());
}

std::unique_ptr<Network> sequence_network(const run::Config& config,
                                          const run::ModelEntry& entry,
                                          const TaskShape& shape) {
  const run::ModelConfig& model = config.model;
  models::SequenceClassifierOptions options(model.dim, model.depth,
                                            model.heads);
  options.vocabulary(shape.vocabulary)
      .context(shape.length)
      .classes(shape.classes)
      .towers(shape.towers)
      .pooling(model.pooling)
      .head(model.head)
      .mask_zeros(model.mask_zeros)
      .positions(model.positions)
      .dropout(model.dropout)
      .drop_path(model.drop_path)
      .initialisation(model.initialisation)
      .qk_gain(model.qk_gain);
  if (!entry.options.empty()) {
    take_published_tables(shape, config.task.name, options);
  }
  set_block(model, options.block());
  return std::make_unique<SequenceNetwork>(options, shape.length);
}

std::unique_ptr<Network> text_network(const run::ModelConfig& model,
                                      const TaskShape& shape) {
  models::GptOptions options(model.dim, model.depth, model.heads);
  options.vocabulary(shape.vocabulary)
      .context(shape.length)
      .positions(model.positions)
      .tied(model.tied)
      .dropout(model.dropout)
      .drop_path(model.drop_path)
      .initialisation(model.initialisation)
      .qk_gain(model.qk_gain);
  set_block(model, options.block());
  return std::make_unique<TextNetwork>(options);
}

// oneDNN 2.6, by which libtorch 1.13 computes in bf16, dies of an illegal
// instruction where a processor has AMX. It reads the variable when it is first
// used.
void keep_off_amx() {
#if TORCH_VERSION_MAJOR < 2
  ::setenv("DNNL_MAX_CPU_ISA", "AVX512_CORE_BF16", /*overwrite=*/0);
#endif
}

}  // namespace

std::unique_ptr<Network> make_network(const run::Config& config,
                                      const TaskShape& shape) {
  keep_off_amx();
  torch::manual_seed(seed_of(static_cast<std::uint64_t>(config.train.seed),
                             Stream::kInitial, 0));
  const run::ModelEntry* const entry = run::find_model(config.model.name);
  TORCH_CHECK(entry != nullptr, "[train] there is no model \"",
              config.model.name, '"');
  switch (entry->family) {
    case run::ModelFamily::kViT:
      return vit_network(config.model, shape);
    case run::ModelFamily::kSwin:
      return swin_network(config.model, *entry, shape);
    case run::ModelFamily::kXCiT:
      return xcit_network(config.model, *entry, shape);
    case run::ModelFamily::kGpt:
      return text_network(config.model, shape);
    case run::ModelFamily::kClassifier:
      return sequence_network(config, *entry, shape);
    case run::ModelFamily::kPinnsformer:
    case run::ModelFamily::kPinn:
      return make_physics_network(config.model, shape.problem);
  }
  TORCH_CHECK(false, "[train] the family of ", config.model.name,
              " has no network");
}

torch::Tensor loss_of(const torch::Tensor& logits, const Batch& batch,
                      double label_smoothing) {
  const auto entropy = [&](const torch::Tensor& targets) {
    return torch::cross_entropy_loss(logits.to(torch::kFloat), targets, {},
                                     at::Reduction::Mean, -100,
                                     label_smoothing);
  };
  const torch::Tensor loss = entropy(batch.targets);
  if (!batch.others.defined()) return loss;
  return loss * batch.share + entropy(batch.others) * (1 - batch.share);
}

std::int64_t parameter_count(const torch::nn::Module& module) {
  std::int64_t count = 0;
  for (const torch::Tensor& parameter : module.parameters()) {
    count += parameter.numel();
  }
  return count;
}

}  // namespace polyattn::train
