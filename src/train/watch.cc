#include "train/watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "polyattn/nn/attention_base.h"

namespace polyattn::train {
namespace {

std::vector<double> by_head(const torch::Tensor& values) {
  const torch::Tensor dense = values.to(torch::kDouble).contiguous();
  return {dense.data_ptr<double>(), dense.data_ptr<double>() + dense.numel()};
}

double norm_of(const std::vector<torch::Tensor>& tensors) {
  double sum = 0;
  for (const torch::Tensor& tensor : tensors) {
    const double norm = tensor.norm().item<double>();
    sum += norm * norm;
  }
  return std::sqrt(sum);
}

void add_parameters(const torch::nn::Module& block, LayerNorms& layer) {
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> weights;
  std::vector<torch::Tensor> gradients;
  for (const torch::Tensor& parameter : block.parameters()) {
    weights.push_back(parameter.detach());
    if (parameter.grad().defined()) gradients.push_back(parameter.grad());
  }
  layer.parameters = norm_of(weights);
  layer.gradient = norm_of(gradients);
}

LayerNorms attention_norms(const nn::AttentionBase& attention) {
  const torch::NoGradGuard no_grad;
  const AttentionNorms& norms = *attention.norms();
  return {.kind = attention.kind(),
          .stage = attention.stage,
          .tokens = attention.keys(),
          .weight_mean = by_head(norms.weight.mean(0)),
          .weight_max = by_head(norms.weight.amax(0)),
          .jacobian_mean = by_head(norms.jacobian.mean(0)),
          .jacobian_max = by_head(norms.jacobian.amax(0)),
          .max_abs_score = by_head(norms.max_abs_score.amax(0)),
          .non_finite = norms.non_finite.sum().item<std::int64_t>()};
}

// NaN is larger than anything: a blow-up must not get lost.
double larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }

// Another batch of the same step.
void add(const LayerNorms& batch, LayerNorms& sum) {
  for (const auto member :
       {&LayerNorms::weight_mean, &LayerNorms::jacobian_mean}) {
    std::transform((sum.*member).begin(), (sum.*member).end(),
                   (batch.*member).begin(), (sum.*member).begin(),
                   std::plus<>());
  }
  for (const auto member : {&LayerNorms::weight_max, &LayerNorms::jacobian_max,
                            &LayerNorms::max_abs_score}) {
    std::transform((sum.*member).begin(), (sum.*member).end(),
                   (batch.*member).begin(), (sum.*member).begin(), larger);
  }
  sum.non_finite += batch.non_finite;
}

// An attention that has norms, and the module that owns it.
struct WatchedBlock {
  const torch::nn::Module* block;
  const nn::AttentionBase* attention;
};

std::vector<WatchedBlock> watched_blocks(const torch::nn::Module& module) {
  std::vector<WatchedBlock> blocks;
  for (const auto& child : module.children()) {
    if (const auto* attention = child->as<nn::AttentionBase>()) {
      if (attention->norms()) blocks.push_back({&module, attention});
      continue;
    }
    const auto inner = watched_blocks(*child);
    blocks.insert(blocks.end(), inner.begin(), inner.end());
  }
  return blocks;
}

void watch(torch::nn::Module& module, bool on) {
  for (nn::AttentionBase* layer : nn::attention_layers(module)) {
    layer->watch_norms(on);
  }
}

base::Json numbers(const std::vector<double>& values) {
  base::Json list = base::Json::array();
  for (const double value : values) list.push_back(base::number(value));
  return list;
}

bool finite(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(),
                     [](double value) { return std::isfinite(value); });
}

template <typename Value>
base::Json by_layer(const std::vector<LayerNorms>& layers,
                    Value LayerNorms::*member) {
  base::Json list = base::Json::array();
  for (const LayerNorms& layer : layers) list.push_back(layer.*member);
  return list;
}

// A list by layer, where layers differ.
template <typename Value>
void add_difference(const char* name, const std::vector<LayerNorms>& layers,
                    Value LayerNorms::*member, base::Json& record) {
  const base::Json list = by_layer(layers, member);
  const auto differs = [&](const auto& value) { return value != list.front(); };
  if (std::any_of(list.begin(), list.end(), differs)) record[name] = list;
}

// Where it is another than that of most models.
void add_kinds(const std::vector<LayerNorms>& layers, base::Json& record) {
  const auto is_other = [](const LayerNorms& layer) {
    return layer.kind != LayerNorms().kind;
  };
  if (std::any_of(layers.begin(), layers.end(), is_other)) {
    record["layer_kind"] = by_layer(layers, &LayerNorms::kind);
  }
}

}  // namespace

NormWatch::NormWatch(torch::nn::Module& module) : module_(module) {
  watch(module_, true);
}

NormWatch::~NormWatch() { watch(module_, false); }

void NormWatch::add_batch() {
  std::vector<LayerNorms> layers;
  for (const WatchedBlock& watched : watched_blocks(module_)) {
    layers.push_back(attention_norms(*watched.attention));
  }
  if (batches_++ == 0) {
    sums_ = std::move(layers);
    return;
  }
  for (std::size_t i = 0; i < layers.size(); ++i) add(layers[i], sums_[i]);
}

std::vector<LayerNorms> NormWatch::norms() const {
  std::vector<LayerNorms> layers = sums_;
  const auto blocks = watched_blocks(module_);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    for (auto* means : {&layers[i].weight_mean, &layers[i].jacobian_mean}) {
      for (double& mean : *means) mean /= static_cast<double>(batches_);
    }
    add_parameters(*blocks[i].block, layers[i]);
  }
  return layers;
}

base::Json norms_record(std::int64_t step, std::int64_t tokens,
                        const std::vector<LayerNorms>& layers) {
  base::Json record = {{"kind", "norms"}, {"step", step}, {"tokens", tokens}};
  for (const auto& [name, member] :
       {std::pair{"weight_mean", &LayerNorms::weight_mean},
        std::pair{"weight_max", &LayerNorms::weight_max},
        std::pair{"jacobian_mean", &LayerNorms::jacobian_mean},
        std::pair{"jacobian_max", &LayerNorms::jacobian_max},
        std::pair{"max_abs_score", &LayerNorms::max_abs_score}}) {
    base::Json list = base::Json::array();
    for (const LayerNorms& layer : layers) {
      list.push_back(numbers(layer.*member));
    }
    record[name] = std::move(list);
  }
  base::Json gradients = base::Json::array();
  base::Json weights = base::Json::array();
  for (const LayerNorms& layer : layers) {
    gradients.push_back(base::number(layer.gradient));
    weights.push_back(base::number(layer.parameters));
  }
  record["grad_norm"] = std::move(gradients);
  record["weight_norm"] = std::move(weights);
  add_kinds(layers, record);
  add_difference("layer_stage", layers, &LayerNorms::stage, record);
  add_difference("layer_tokens", layers, &LayerNorms::tokens, record);
  return record;
}

std::optional<std::string> first_blow_up(
    const std::vector<LayerNorms>& layers) {
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const LayerNorms& layer = layers[i];
    if (!std::isfinite(layer.parameters)) {
      return fmt::format("layer {}: norm of the parameters is {}", i,
                         layer.parameters);
    }
    for (const auto& [name, values] :
         {std::pair{"largest |score|", &layer.max_abs_score},
          std::pair{"norm of the attention matrix", &layer.weight_max},
          std::pair{"norm of the Jacobian", &layer.jacobian_max}}) {
      if (finite(*values)) continue;
      const auto head =
          std::find_if_not(values->begin(), values->end(),
                           [](double value) { return std::isfinite(value); });
      return fmt::format("attention of layer {}, head {}: {} is {}", i,
                         head - values->begin(), name, *head);
    }
    if (layer.non_finite > 0) {
      return fmt::format("attention of layer {}: {} outputs are not finite", i,
                         layer.non_finite);
    }
  }
  // Gradients flow backwards: the last layer that is not finite was first.
  for (std::size_t i = layers.size(); i-- > 0;) {
    if (!std::isfinite(layers[i].gradient)) {
      return fmt::format("layer {}: norm of the gradient is {}", i,
                         layers[i].gradient);
    }
  }
  return std::nullopt;
}

}  // namespace polyattn::train
