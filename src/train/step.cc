#include "train/step.h"

#include <fmt/format.h>

#include <cmath>

#include "polyattn/nn/attention.h"
#include "torch/autocast.h"
#include "train/physics_task.h"
#include "train/random.h"
#include "train/schedule.h"

namespace polyattn::train {
namespace {

// Of model.norm_clamp = "penalty": the mean over the layers.
torch::Tensor norm_penalty(torch::nn::Module& module) {
  std::vector<torch::Tensor> penalties;
  for (nn::AttentionBase* layer : nn::attention_layers(module)) {
    const auto* attention = layer->as<nn::AttentionImpl>();
    if (attention != nullptr) penalties.push_back(attention->norm_penalty());
  }
  return torch::stack(penalties).mean();
}

}  // namespace

Autocast::Autocast(const std::string& kind) : on_(kind == "bf16") {
  if (!on_) return;
  set_autocast_type(at::kBFloat16);
  enable_autocast(true);
  at::autocast::increment_nesting();
}

Autocast::~Autocast() {
  if (!on_) return;
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  enable_autocast(false);
}

torch::Tensor Stepper::loss_of_batch(const Batch& batch) {
  const Autocast autocast(config_.train.autocast);
  const auto terms = network_.loss_terms(batch);
  if (!terms.empty()) return sum_of(terms);
  if (teacher_ == nullptr) {
    return loss_of(network_.logits(batch), batch,
                   config_.train.label_smoothing);
  }
  return distillation_loss(network_.distilled_logits(batch),
                           teacher_->logits(batch), batch, config_.train);
}

double Stepper::accumulate(const std::vector<Batch>& batches, std::int64_t step,
                           NormWatch* watch) {
  torch::manual_seed(seed_of(static_cast<std::uint64_t>(config_.train.seed),
                             Stream::kDropout,
                             static_cast<std::uint64_t>(step)));
  double sum = 0;
  const auto share = 1 / static_cast<double>(batches.size());
  for (const Batch& batch : batches) {
    torch::Tensor loss = loss_of_batch(batch);
    sum += share * loss.item<double>();
    if (config_.model.norm_clamp == "penalty") {
      loss =
          loss + config_.train.norm_penalty * norm_penalty(network_.module());
    }
    (batches.size() == 1 ? loss : loss * share).backward();
    if (watch != nullptr) watch->add_batch();
  }
  return sum;
}

StepResult Stepper::make(Prefetcher& prefetcher, std::int64_t step,
                         bool watch) {
  StepResult result;
  std::vector<Batch> batches;
  for (std::int64_t i = 0; i < config_.train.accumulate; ++i) {
    batches.push_back(prefetcher.next());
    result.items += batches.back().items;
  }
  const auto closure = [&] {
    if (!watch) return accumulate(batches, step, nullptr);
    NormWatch watching(network_.module());
    const double loss = accumulate(batches, step, &watching);
    result.norms = watching.norms();
    return loss;
  };
  const OptimizerStep made =
      optimizer_.step(learning_rate(config_.train, step, steps_), closure);
  result.loss = made.loss;
  result.gradient_norm = made.gradient_norm;
  result.lr = made.lr;
  if (made.diverged) {
    result.diverged = made.what ? *made.what : diagnose(batches, step, result);
  }
  return result;
}

// The same pass again, with the norms watched: random numbers are functions of
// the step, so it ends in the same way.
std::string Stepper::diagnose(const std::vector<Batch>& batches,
                              std::int64_t step, const StepResult& result) {
  for (torch::Tensor& parameter : network_.module().parameters()) {
    parameter.mutable_grad().reset();
  }
  NormWatch watching(network_.module());
  accumulate(batches, step, &watching);
  if (auto found = first_blow_up(watching.norms())) return *found;
  return std::isfinite(result.loss)
             ? fmt::format("norm of the gradient is {}", result.gradient_norm)
             : fmt::format("the loss is {}, behind the last attention",
                           result.loss);
}

}  // namespace polyattn::train
