#include "train/attention_maps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/base64.h"
#include "data/listops.h"
#include "polyattn/nn/attention_base.h"

namespace polyattn::train {
namespace {

constexpr std::int64_t kMostInputs = 3;

// While it lives, the attention layers of a module keep their matrices.
class WeightWatch {
 public:
  explicit WeightWatch(std::vector<nn::AttentionBase*> layers)
      : layers_(std::move(layers)) {
    for (nn::AttentionBase* layer : layers_) layer->watch_weights(true);
  }
  ~WeightWatch() {
    for (nn::AttentionBase* layer : layers_) layer->watch_weights(false);
  }
  WeightWatch(const WeightWatch&) = delete;
  WeightWatch& operator=(const WeightWatch&) = delete;

 private:
  std::vector<nn::AttentionBase*> layers_;
};

// Matrices of windows and channels are not over the rows of an input.
std::vector<nn::AttentionBase*> token_layers(torch::nn::Module& module) {
  auto layers = nn::attention_layers(module);
  std::erase_if(layers, [](const auto* layer) {
    return layer->kind() != "token" && layer->kind() != "nystrom";
  });
  return layers;
}

base::Json image_input(const TestImage& image, std::int64_t patch) {
  const augment::Image& pixels = image.pixels;
  return {{"label", image.label},
          {"kind", "image"},
          {"image",
           {{"width", pixels.width},
            {"height", pixels.height},
            {"channels", pixels.channels},
            {"patch", patch},
            {"pixels", base::base64(pixels.pixels)}}}};
}

std::string byte_text(std::int64_t byte) {
  const bool plain = byte >= 0x20 && byte < 0x7f;
  if (plain || byte == 10) return {static_cast<char>(byte)};
  return fmt::format("\\x{:02x}", byte);
}

std::string listops_token(std::int64_t token) {
  switch (token) {
    case data::kListOpsMin:
      return "[MIN";
    case data::kListOpsMax:
      return "[MAX";
    case data::kListOpsMed:
      return "[MED";
    case data::kListOpsSum:
      return "[SM";
    case data::kListOpsEnd:
      return "]";
    default:
      return std::to_string(token - data::kListOpsDigit);
  }
}

base::Json token_input(const std::string& task, const torch::Tensor& tokens) {
  base::Json list = base::Json::array();
  for (std::int64_t i = 0; i < tokens.size(0); ++i) {
    const auto token = tokens[i].item<std::int64_t>();
    list.push_back(task == "listops" ? listops_token(token)
                   : task == "imdb"  ? byte_text(token - 1)
                                     : byte_text(token));
  }
  return {{"label", fmt::format("{} tokens", tokens.size(0))},
          {"kind", "text"},
          {"tokens", std::move(list)}};
}

// The first rows of a batch. Of sequences, which differ in length, one, without
// its padding.
Batch first_rows(const Examples& examples, std::int64_t count) {
  Batch batch = examples.test_batch(0);
  if (batch.lengths.defined()) {
    batch = examples.test_batch(examples.test_batches() / 2);
    count = 1;
    batch.lengths = batch.lengths.narrow(0, 0, 1);
    batch.inputs =
        batch.inputs.narrow(1, 0, batch.lengths[0].item<std::int64_t>());
  }
  count = std::min(count, batch.inputs.size(0));
  batch.inputs = batch.inputs.narrow(0, 0, count);
  return batch;
}

base::Json map_json(const torch::Tensor& weights) {
  const torch::Tensor dense = weights.to(torch::kFloat).contiguous();
  const float* const values = dense.data_ptr<float>();
  float scale = 0;
  for (std::int64_t i = 0; i < dense.numel(); ++i) {
    if (std::isfinite(values[i])) scale = std::max(scale, std::abs(values[i]));
  }
  std::vector<std::uint8_t> bytes;
  bytes.reserve(static_cast<std::size_t>(dense.numel()));
  for (std::int64_t i = 0; i < dense.numel(); ++i) {
    const float share =
        scale > 0 && std::isfinite(values[i]) ? values[i] / scale : 0;
    bytes.push_back(static_cast<std::uint8_t>(
        static_cast<std::int8_t>(std::lround(127 * share))));
  }
  return {{"scale", scale}, {"values", base::base64(bytes)}};
}

// `count` of these, evenly spread, with first and last.
std::vector<std::int64_t> spread(std::int64_t count, std::int64_t all) {
  count = std::clamp<std::int64_t>(count, 1, all);
  std::vector<std::int64_t> chosen;
  for (std::int64_t i = 0; i < count; ++i) {
    chosen.push_back(count == 1 ? all - 1 : i * (all - 1) / (count - 1));
  }
  return chosen;
}

// What fits: matrices of `bytes` each.
struct Choice {
  std::int64_t inputs = 0;
  std::vector<std::int64_t> layers;
  std::int64_t heads = 0;
};

Choice choose(std::int64_t bytes, std::int64_t layers, std::int64_t heads) {
  const std::int64_t count = kMapBytes / bytes;
  const std::int64_t inputs =
      std::clamp<std::int64_t>(count / (layers * heads), 1, kMostInputs);
  const std::int64_t shown = std::min(heads, std::max<std::int64_t>(1, count));
  return {inputs, spread(count / inputs / shown, layers), shown};
}

}  // namespace

base::Json attention_maps(Network& network, const Examples& examples,
                          const run::Config& config) {
  const auto layers = token_layers(network.module());
  if (layers.empty()) return nullptr;
  const torch::NoGradGuard no_grad;
  const Batch batch = first_rows(examples, kMostInputs);
  const bool training = network.module().is_training();
  network.module().eval();
  const WeightWatch watch(layers);
  network.logits(batch);
  network.module().train(training);

  const torch::Tensor& first = layers.front()->weights();
  const std::int64_t n = first.size(2), m = first.size(3);
  if (n * m > kMapBytes || n * m == 0) return nullptr;
  Choice chosen =
      choose(n * m, static_cast<std::int64_t>(layers.size()), first.size(1));
  chosen.inputs = std::min(chosen.inputs, batch.inputs.size(0));
  base::Json json = {{"inputs", base::Json::array()},
                     {"class_token", network.prefix() > 0},
                     {"rows", n},
                     {"columns", m},
                     {"maps", base::Json::array()}};
  if (network.prefix() > 1) json["prefix"] = network.prefix();
  for (std::int64_t input = 0; input < chosen.inputs; ++input) {
    const auto image = examples.test_image(input);
    json["inputs"].push_back(
        image ? image_input(*image, config.model.patch)
              : token_input(config.task.name, batch.inputs[input]));
    for (const std::int64_t layer : chosen.layers) {
      const torch::Tensor& weights =
          layers[static_cast<std::size_t>(layer)]->weights();
      for (std::int64_t head = 0; head < chosen.heads; ++head) {
        base::Json map = {{"input", input}, {"layer", layer}, {"head", head}};
        map.update(map_json(weights[input][head]));
        json["maps"].push_back(std::move(map));
      }
    }
  }
  return json;
}

}  // namespace polyattn::train
