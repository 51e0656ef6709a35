#include "train/adamw.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "train/adamw_step.h"

namespace polyattn::train {
namespace {

constexpr std::int64_t kPiece = 8192;

std::span<float> part(const torch::Tensor& tensor, std::int64_t first,
                      std::int64_t last) {
  return {tensor.data_ptr<float>() + first,
          static_cast<std::size_t>(last - first)};
}

}  // namespace

bool decays(const std::string& name, const torch::Tensor& parameter) {
  if (parameter.dim() < 2) return false;
  for (const char* end :
       {"positions.weight", "class_token.weight", "dist_token.weight",
        "coefficients", "bias_table", "logit_scale"}) {
    if (name.ends_with(end)) return false;
  }
  return true;
}

AdamW::AdamW(const torch::nn::Module& module, const run::TrainConfig& options)
    : options_(options) {
  for (const auto& item : module.named_parameters()) {
    const torch::Tensor& weight = item.value();
    TORCH_CHECK(weight.scalar_type() == torch::kFloat && weight.is_contiguous(),
                "[AdamW] parameter ", item.key(), " is not dense f32");
    const torch::Tensor data = weight.detach();
    slots_.push_back({.name = item.key(),
                      .weight = weight,
                      .m = torch::zeros_like(data),
                      .v = torch::zeros_like(data),
                      .average = averages() ? data.clone() : torch::Tensor(),
                      .decays = decays(item.key(), weight)});
    for (std::int64_t first = 0; first < weight.numel(); first += kPiece) {
      pieces_.push_back(
          {slots_.size() - 1, first, std::min(first + kPiece, weight.numel())});
    }
  }
  if (!averages()) return;
  for (const auto& item : module.named_buffers()) {
    const torch::Tensor& value = item.value();
    if (value.scalar_type() != torch::kFloat) continue;
    TORCH_CHECK(value.is_contiguous(), "[AdamW] buffer ", item.key(),
                " is not dense");
    buffers_.push_back({item.key(), value, value.clone()});
  }
}

double AdamW::gradient_norm() {
  // The pieces read a gradient as one stretch of memory.
  for (Slot& slot : slots_) {
    torch::Tensor& grad = slot.weight.mutable_grad();
    if (grad.defined()) grad = grad.contiguous();
  }
  std::vector<double> squares(pieces_.size());
  at::parallel_for(0, static_cast<std::int64_t>(pieces_.size()), 4,
                   [&](std::int64_t begin, std::int64_t end) {
                     for (auto i = static_cast<std::size_t>(begin);
                          i < static_cast<std::size_t>(end); ++i) {
                       const Piece& piece = pieces_[i];
                       const auto& grad = slots_[piece.slot].weight.grad();
                       if (!grad.defined()) continue;
                       squares[i] =
                           sum_of_squares(part(grad, piece.first, piece.last));
                     }
                   });
  double sum = 0;
  for (const double square : squares) sum += square;
  return std::sqrt(sum);
}

void AdamW::update(const Piece& piece, double lr, double scale) {
  const Slot& slot = slots_[piece.slot];
  if (!slot.weight.grad().defined()) return;
  const auto of = [&](const torch::Tensor& tensor) {
    return part(tensor, piece.first, piece.last);
  };
  const auto steps = static_cast<double>(steps_);
  const double decay = slot.decays ? lr * options_.weight_decay : 0.0;
  adamw_step(
      {.clip = static_cast<float>(scale),
       .b1 = static_cast<float>(options_.beta1),
       .b2 = static_cast<float>(options_.beta2),
       .shrink = static_cast<float>(1 - decay),
       .rate = static_cast<float>(lr / (1 - std::pow(options_.beta1, steps))),
       .root = static_cast<float>(
           1 / std::sqrt(1 - std::pow(options_.beta2, steps))),
       .eps = static_cast<float>(options_.eps)},
      {.gradient = of(slot.weight.grad()),
       .weight = of(slot.weight),
       .m = of(slot.m),
       .v = of(slot.v)});
  if (!averages()) return;
  move_average(static_cast<float>(kept_of_average()), of(slot.weight),
               of(slot.average));
}

// A short memory at first, so that the start is forgotten.
double AdamW::kept_of_average() const {
  const auto steps = static_cast<double>(steps_);
  return std::min(options_.ema, (1 + steps) / (10 + steps));
}

void AdamW::step(double lr, double norm) {
  ++steps_;
  const double scale =
      options_.clip > 0 && norm > options_.clip ? options_.clip / norm : 1;
  at::parallel_for(0, static_cast<std::int64_t>(pieces_.size()), 4,
                   [&](std::int64_t begin, std::int64_t end) {
                     for (std::int64_t i = begin; i < end; ++i) {
                       update(pieces_[static_cast<std::size_t>(i)], lr, scale);
                     }
                   });
  for (Slot& slot : slots_) slot.weight.mutable_grad().reset();
  for (const Buffer& buffer : buffers_) {
    move_average(static_cast<float>(kept_of_average()),
                 part(buffer.value, 0, buffer.value.numel()),
                 part(buffer.average, 0, buffer.value.numel()));
  }
}

OptimizerStep AdamW::step(double lr, const Closure& closure) {
  OptimizerStep made{.lr = lr};
  made.loss = closure();
  made.gradient_norm = gradient_norm();
  made.diverged =
      !std::isfinite(made.loss) || !std::isfinite(made.gradient_norm);
  if (!made.diverged) step(lr, made.gradient_norm);
  return made;
}

models::NamedTensors AdamW::state() const {
  models::NamedTensors tensors;
  for (const Slot& slot : slots_) {
    tensors["adam.m." + slot.name] = slot.m;
    tensors["adam.v." + slot.name] = slot.v;
    if (averages()) tensors["ema." + slot.name] = slot.average;
  }
  for (const Buffer& buffer : buffers_) {
    tensors["ema." + buffer.name] = buffer.average;
  }
  return tensors;
}

std::function<void()> AdamW::taking(const models::NamedTensors& tensors,
                                    std::int64_t steps) {
  std::vector<std::string> problems;
  std::vector<Slot> loaded = slots_;
  for (Slot& slot : loaded) {
    slot.m = take_tensor(tensors, "adam.m." + slot.name, slot.m, problems);
    slot.v = take_tensor(tensors, "adam.v." + slot.name, slot.v, problems);
    if (averages()) {
      slot.average =
          take_tensor(tensors, "ema." + slot.name, slot.average, problems);
    }
  }
  std::vector<Buffer> averages = buffers_;
  for (Buffer& buffer : averages) {
    buffer.average =
        take_tensor(tensors, "ema." + buffer.name, buffer.average, problems);
  }
  if (!problems.empty()) {
    throw models::WeightsError("AdamW", std::move(problems));
  }
  return [this, steps, slots = std::move(loaded),
          buffers = std::move(averages)]() mutable {
    slots_ = std::move(slots);
    buffers_ = std::move(buffers);
    steps_ = steps;
  };
}

void AdamW::swap_average() {
  if (!averages()) return;
  const torch::NoGradGuard no_grad;
  const auto swap = [](torch::Tensor value, torch::Tensor average) {
    const torch::Tensor old = value.clone();
    value.copy_(average);
    average.copy_(old);
  };
  for (Slot& slot : slots_) swap(slot.weight.detach(), slot.average);
  for (Buffer& buffer : buffers_) swap(buffer.value, buffer.average);
}

}  // namespace polyattn::train
