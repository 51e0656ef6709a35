#include "train/run_norms.h"

#include <ATen/Parallel.h>

#include <stdexcept>

#include "polyattn/nn/attention.h"
#include "train/loaded_run.h"
#include "train/step.h"
#include "train/text_tokens.h"
#include "train/watch.h"

namespace polyattn::train {
namespace {

double root_mean_square(const std::optional<AttentionNorms>& norms) {
  return norms ? norms->weight.square().mean().sqrt().item<double>() : 0;
}

std::vector<LayerRoots> roots_of(
    const std::vector<nn::AttentionBase*>& attentions) {
  std::vector<LayerRoots> roots;
  for (const nn::AttentionBase* attention : attentions) {
    roots.push_back({.own = root_mean_square(attention->norms()),
                     .other = root_mean_square(attention->other_norms())});
  }
  return roots;
}

// The theory has one N and one D for all layers.
const nn::AttentionImpl& token_attention(
    const std::vector<nn::AttentionBase*>& attentions) {
  for (nn::AttentionBase* attention : attentions) {
    if (attention->kind() != "token") {
      throw std::runtime_error("[theory] the run has attention of kind " +
                               attention->kind() +
                               ", where N or D differ between layers: only "
                               "models of token attention can be measured");
    }
  }
  return *attentions.front()->as<nn::AttentionImpl>();
}

}  // namespace

RunNorms measure_run_norms(const RunNormsOptions& options) {
  at::set_num_threads(options.threads);
  run::Config config = run::read_run_config(options.folder);
  if (!options.path.empty()) config.task.path = options.path;
  const auto data =
      load_task_data(config.task, tokenizer_of(options.folder, config.task));
  const LoadedRun loaded = load_run(options.folder, config,
                                    shape_of(*data, config.task), options.best);
  const auto examples = make_examples(data, config);
  const auto attentions = nn::attention_layers(loaded.network->module());
  const nn::AttentionImpl& attention = token_attention(attentions);
  const torch::NoGradGuard no_grad;
  const Autocast autocast(config.train.autocast);
  NormWatch watch(loaded.network->module());
  for (nn::AttentionBase* layer : attentions) {
    layer->watch_other(options.other);
  }
  const Batch batch = examples->test_batch(0);
  loaded.network->logits(batch);
  watch.add_batch();
  return {.task = config.task.name,
          .activation = config.model.activation,
          .step = loaded.step,
          .tokens = loaded.network->tokens(),
          .head_dim = attention.head_dim(),
          .causal = attention.options.causal(),
          .examples = batch.inputs.size(0),
          .layers = watch.norms(),
          .roots = roots_of(attentions)};
}

}  // namespace polyattn::train
