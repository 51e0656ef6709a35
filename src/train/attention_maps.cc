#include "train/attention_maps.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/base64.h"
#include "base/utf8.h"
#include "data/listops.h"
#include "data/probes.h"
#include "polyattn/nn/attention_base.h"
#include "train/layer_maps.h"
#include "train/run/tasks.h"

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

// Pieces are of UTF-8, but for bytes of which no piece is.
std::string piece_text(const std::string& piece) {
  if (base::utf8_prefix(piece) == piece.size()) return piece;
  std::string text;
  for (const char c : piece)
    text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return text;
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

std::string token_text(const std::string& task, std::int64_t token) {
  if (task == "listops") return listops_token(token);
  const unsigned kind = run::find_task(task)->kind;
  if ((kind & (run::kImdb | run::kPairs)) != 0) return byte_text(token - 1);
  if ((kind & (run::kPixels | run::kPathfinder)) != 0) {
    return std::to_string(token);
  }
  const bool probe = task == "recall" || task == "copy";
  return probe ? data::probe_token(task, token) : byte_text(token);
}

base::Json token_input(const Examples& examples, const std::string& task,
                       const torch::Tensor& tokens) {
  base::Json list = base::Json::array();
  for (std::int64_t i = 0; i < tokens.size(0); ++i) {
    const auto token = tokens[i].item<std::int64_t>();
    const auto piece = examples.token_bytes(token);
    list.push_back(piece ? piece_text(*piece) : token_text(task, token));
  }
  return {{"label", fmt::format("{} tokens", tokens.size(0))},
          {"kind", "text"},
          {"tokens", std::move(list)}};
}

// The first rows of a batch. Of sequences, which differ in length, one, without
// its padding; of a pair its first, with itself: what a sequence attends to
// does not depend on the other one.
Batch first_rows(const Examples& examples, std::int64_t count) {
  Batch batch = examples.test_batch(0);
  if (batch.lengths.defined()) {
    batch = examples.test_batch(examples.test_batches() / 2);
    const std::int64_t towers = batch.inputs.size(0) / batch.targets.size(0);
    batch.targets = batch.targets.narrow(0, 0, 1);
    batch.lengths = batch.lengths.narrow(0, 0, 1).repeat({towers});
    const auto length = batch.lengths[0].item<std::int64_t>();
    batch.inputs =
        batch.inputs.narrow(0, 0, 1).narrow(1, 0, length).repeat({towers, 1});
    return batch;
  }
  count = std::min(count, batch.inputs.size(0));
  batch.inputs = batch.inputs.narrow(0, 0, count);
  return batch;
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

// Of layers whose matrices are all over the rows of an input.
base::Json token_maps(const std::vector<nn::AttentionBase*>& layers,
                      std::int64_t inputs, std::int64_t prefix) {
  const torch::Tensor& first = layers.front()->weights();
  const std::int64_t n = first.size(2), m = first.size(3);
  if (n * m > kMapBytes || n * m == 0) return nullptr;
  const Choice chosen =
      choose(n * m, static_cast<std::int64_t>(layers.size()), first.size(1));
  base::Json json = {{"class_token", prefix > 0},
                     {"rows", n},
                     {"columns", m},
                     {"maps", base::Json::array()}};
  if (prefix > 1) json["prefix"] = prefix;
  for (std::int64_t input = 0; input < std::min(inputs, chosen.inputs);
       ++input) {
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

bool are_over_tokens(const std::vector<nn::AttentionBase*>& layers) {
  return std::all_of(layers.begin(), layers.end(), [](const auto* layer) {
    return layer->kind() == "token" || layer->kind() == "nystrom";
  });
}

}  // namespace

base::Json attention_maps(Network& network, const Examples& examples,
                          const run::Config& config) {
  const auto layers = nn::attention_layers(network.module());
  if (layers.empty() || examples.whole() != nullptr) return nullptr;
  const torch::NoGradGuard no_grad;
  const Batch batch = first_rows(examples, kMostInputs);
  const bool training = network.module().is_training();
  network.module().eval();
  const WeightWatch watch(layers);
  network.logits(batch);
  network.module().train(training);

  const std::int64_t most = batch.lengths.defined() ? 1 : batch.inputs.size(0);
  base::Json json = are_over_tokens(layers)
                        ? token_maps(layers, most, network.prefix())
                        : layer_maps(layers, most, config.model.patch);
  if (json.is_null()) return json;
  json["inputs"] = base::Json::array();
  const auto shown = json["maps"].back()["input"].get<std::int64_t>() + 1;
  for (std::int64_t input = 0; input < shown; ++input) {
    const auto image = examples.test_image(input);
    json["inputs"].push_back(
        image ? image_input(*image, config.model.patch)
              : token_input(examples, config.task.name, batch.inputs[input]));
  }
  return json;
}

}  // namespace polyattn::train
