#include "train/start.h"

#include <stdexcept>
#include <string>

#include "polyattn/activation.h"

namespace polyattn::train {
namespace {

base::Json by_layer(const std::vector<nn::LayerStart>& layers,
                    double nn::HeadStart::*member) {
  base::Json list = base::Json::array();
  for (const nn::LayerStart& layer : layers) {
    base::Json heads = base::Json::array();
    for (const nn::HeadStart& head : layer) {
      heads.push_back(base::number(head.*member));
    }
    list.push_back(std::move(heads));
  }
  return list;
}

}  // namespace

StartedNetwork start_network(const run::Config& config, const TaskShape& shape,
                             Examples& examples) {
  StartedNetwork started{make_network(config, shape), {}};
  const bool softmax = Activation::parse(config.model.activation).kind ==
                       ActivationKind::kSoftmax;
  if (config.model.start != "matched" || softmax) return started;
  Network& network = *started.network;
  network.module().eval();
  const Batch batch = examples.train_batch(0);
  try {
    started.layers = nn::match_start(
        network.module(), [&] { network.logits(batch); },
        config.model.start_factor);
  } catch (const c10::Error& error) {
    throw std::runtime_error(
        "[train] the first batch cannot set the start of the scores: " +
        std::string(error.what_without_backtrace()) +
        " (model.start=plain leaves them as they are drawn)");
  }
  return started;
}

base::Json start_record(const run::Config& config,
                        const std::vector<nn::LayerStart>& layers) {
  return {{"kind", "start"},
          {"step", 0},
          {"factor", config.model.start_factor},
          {"gain", by_layer(layers, &nn::HeadStart::gain)},
          {"weight_before", by_layer(layers, &nn::HeadStart::before)},
          {"weight", by_layer(layers, &nn::HeadStart::after)},
          {"softmax", by_layer(layers, &nn::HeadStart::softmax)}};
}

}  // namespace polyattn::train
