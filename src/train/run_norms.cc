#include "train/run_norms.h"

#include <ATen/Parallel.h>

#include "polyattn/nn/attention.h"
#include "train/loaded_run.h"
#include "train/step.h"
#include "train/watch.h"

namespace polyattn::train {
namespace {

double root_mean_square(const std::optional<AttentionNorms>& norms) {
  return norms ? norms->weight.square().mean().sqrt().item<double>() : 0;
}

std::vector<LayerRoots> roots_of(
    const std::vector<nn::AttentionImpl*>& attentions) {
  std::vector<LayerRoots> roots;
  for (const nn::AttentionImpl* attention : attentions) {
    roots.push_back({.own = root_mean_square(attention->norms()),
                     .other = root_mean_square(attention->other_norms())});
  }
  return roots;
}

}  // namespace

RunNorms measure_run_norms(const RunNormsOptions& options) {
  at::set_num_threads(options.threads);
  run::Config config = run::read_run_config(options.folder);
  if (!options.path.empty()) config.task.path = options.path;
  const auto data = load_task_data(config.task);
  const LoadedRun loaded = load_run(options.folder, config,
                                    shape_of(*data, config.task), options.best);
  const auto examples = make_examples(data, config);
  const auto attentions = nn::attention_layers(loaded.network->module());
  const torch::NoGradGuard no_grad;
  const Autocast autocast(config.train.autocast);
  NormWatch watch(loaded.network->module());
  for (nn::AttentionImpl* attention : attentions) {
    attention->watch_other(options.other);
  }
  const Batch batch = examples->test_batch(0);
  loaded.network->logits(batch);
  watch.add_batch();
  return {.task = config.task.name,
          .activation = config.model.activation,
          .step = loaded.step,
          .tokens = loaded.network->tokens(),
          .head_dim = attentions.front()->head_dim(),
          .causal = attentions.front()->options.causal(),
          .examples = batch.inputs.size(0),
          .layers = watch.norms(),
          .roots = roots_of(attentions)};
}

}  // namespace polyattn::train
