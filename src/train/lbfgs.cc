#include "train/lbfgs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "train/flat_vectors.h"

namespace polyattn::train {
namespace {

// A stretch of the line is not divided any more where no weight would change by
// more.
constexpr double kLeastMove = 1e-9;

std::span<float> flat(const torch::Tensor& tensor) {
  return {tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

torch::Tensor flat_scaled(const torch::Tensor& x, double factor) {
  torch::Tensor result = torch::zeros_like(x);
  add_scaled(static_cast<float>(factor), flat(x), flat(result));
  return result;
}

torch::Tensor flat_difference(const torch::Tensor& a, const torch::Tensor& b) {
  torch::Tensor result = torch::empty_like(a);
  set_scaled_sum(flat(a), -1, flat(b), flat(result));
  return result;
}

double flat_dot(const torch::Tensor& a, const torch::Tensor& b) {
  return dot(flat(a), flat(b));
}

}  // namespace

Lbfgs::Lbfgs(const torch::nn::Module& module, const run::TrainConfig& options)
    : most_pairs_(static_cast<std::size_t>(options.history_size)),
      line_search_steps_(options.line_search_steps) {
  for (const auto& item : module.named_parameters()) {
    const torch::Tensor& weight = item.value();
    TORCH_CHECK(weight.scalar_type() == torch::kFloat && weight.is_contiguous(),
                "[Lbfgs] parameter ", item.key(), " is not dense f32");
    weights_.push_back(weight);
    count_ += weight.numel();
  }
}

torch::Tensor Lbfgs::flat_weights() const {
  std::vector<torch::Tensor> parts;
  for (const torch::Tensor& weight : weights_) {
    parts.push_back(weight.detach().reshape(-1));
  }
  return torch::cat(parts);
}

torch::Tensor Lbfgs::take_gradient() const {
  std::vector<torch::Tensor> parts;
  for (const torch::Tensor& weight : weights_) {
    torch::Tensor& gradient = weight.mutable_grad();
    parts.push_back(gradient.defined() ? gradient.detach().reshape(-1)
                                       : torch::zeros({weight.numel()}));
    gradient.reset();
  }
  return torch::cat(parts);
}

void Lbfgs::move(const torch::Tensor& from, double t,
                 const torch::Tensor& direction) const {
  std::size_t first = 0;
  for (const torch::Tensor& weight : weights_) {
    const std::span<float> part = flat(weight);
    set_scaled_sum(flat(from).subspan(first, part.size()),
                   static_cast<float>(t),
                   flat(direction).subspan(first, part.size()), part);
    first += part.size();
  }
}

LinePoint Lbfgs::evaluate(const Closure& closure) const {
  LinePoint point;
  {
    const torch::AutoGradMode grad(true);
    point.value = closure();
  }
  point.gradient = take_gradient();
  return point;
}

Lbfgs::Pair Lbfgs::make_pair(torch::Tensor s, torch::Tensor y) {
  const double sy = flat_dot(s, y);
  return {.s = std::move(s), .y = std::move(y), .sy = sy};
}

torch::Tensor Lbfgs::direction() const {
  torch::Tensor d = flat_scaled(kept_.gradient, -1);
  if (kept_.pairs.empty()) return d;
  std::vector<double> alphas;
  for (auto pair = kept_.pairs.rbegin(); pair != kept_.pairs.rend(); ++pair) {
    alphas.push_back(flat_dot(pair->s, d) / pair->sy);
    add_scaled(static_cast<float>(-alphas.back()), flat(pair->y), flat(d));
  }
  const Pair& last = kept_.pairs.back();
  d = flat_scaled(d, last.sy / flat_dot(last.y, last.y));
  for (const Pair& pair : kept_.pairs) {
    const double beta = flat_dot(pair.y, d) / pair.sy;
    add_scaled(static_cast<float>(alphas.back() - beta), flat(pair.s), flat(d));
    alphas.pop_back();
  }
  return d;
}

double Lbfgs::first_length() const {
  if (!kept_.pairs.empty()) return 1;
  return std::min(1.0, 1 / sum_of_magnitudes(flat(kept_.gradient)));
}

// Leaves the weights at one of the points that were tried.
LineSearchResult Lbfgs::search(const torch::Tensor& direction,
                               const Closure& closure) const {
  const LinePoint start{.value = kept_.loss,
                        .slope = flat_dot(kept_.gradient, direction),
                        .gradient = kept_.gradient};
  if (!(start.slope < 0) || !std::isfinite(start.slope)) {
    return {.best = start, .none_finite = false};
  }
  const torch::Tensor from = flat_weights();
  const auto at = [&](double t) {
    move(from, t, direction);
    LinePoint point = evaluate(closure);
    point.t = t;
    point.slope = flat_dot(point.gradient, direction);
    return point;
  };
  const LineSearchOptions options{
      .evaluations = line_search_steps_,
      .shortest = kLeastMove / largest_magnitude(flat(direction))};
  LineSearchResult result = search_line(at, start, first_length(), options);
  move(from, result.best.t, direction);
  return result;
}

// Of a pair with less curvature the rounding of y decides the sign.
void Lbfgs::keep(const LinePoint& end, const torch::Tensor& direction) {
  Pair pair = make_pair(flat_scaled(direction, end.t),
                        flat_difference(end.gradient, kept_.gradient));
  const double lengths =
      std::sqrt(flat_dot(pair.s, pair.s) * flat_dot(pair.y, pair.y));
  if (pair.sy > std::numeric_limits<float>::epsilon() * lengths) {
    if (kept_.pairs.size() == most_pairs_) kept_.pairs.pop_front();
    kept_.pairs.push_back(std::move(pair));
  }
  kept_.gradient = end.gradient;
  kept_.loss = end.value;
}

OptimizerStep Lbfgs::step(double /*lr*/, const Closure& closure) {
  const torch::NoGradGuard no_grad;
  if (!kept_.gradient.defined()) {
    const LinePoint start = evaluate(closure);
    kept_.gradient = start.gradient;
    kept_.loss = start.value;
  }
  OptimizerStep made{.loss = kept_.loss};
  made.gradient_norm = std::sqrt(flat_dot(kept_.gradient, kept_.gradient));
  made.diverged =
      !std::isfinite(made.loss) || !std::isfinite(made.gradient_norm);
  while (!made.diverged && !kept_.ended) {
    const torch::Tensor along = direction();
    const LineSearchResult found = search(along, closure);
    if (found.best.t > 0) {
      made.lr = found.best.t;
      keep(found.best, along);
      return made;
    }
    if (!kept_.pairs.empty()) {
      kept_.pairs.clear();
    } else if (found.none_finite) {
      made.diverged = true;
      made.what = fmt::format(
          "the loss is not finite at any of {} points along the gradient, the "
          "nearest at {:.3g} of its length (train.line_search_steps)",
          found.evaluations, found.shortest_tried);
    } else {
      kept_.ended = true;
    }
  }
  return made;
}

models::NamedTensors Lbfgs::state() const {
  if (!kept_.gradient.defined()) return {};
  models::NamedTensors tensors = {
      {"lbfgs.gradient", kept_.gradient},
      {"lbfgs.loss", torch::full({1}, kept_.loss, torch::kDouble)},
      {"lbfgs.ended", torch::full({1}, kept_.ended ? 1 : 0, torch::kLong)}};
  if (kept_.pairs.empty()) return tensors;
  std::vector<torch::Tensor> s, y;
  for (const Pair& pair : kept_.pairs) {
    s.push_back(pair.s);
    y.push_back(pair.y);
  }
  tensors["lbfgs.s"] = torch::stack(s);
  tensors["lbfgs.y"] = torch::stack(y);
  return tensors;
}

std::deque<Lbfgs::Pair> Lbfgs::pairs_in(
    const models::NamedTensors& tensors,
    std::vector<std::string>& problems) const {
  std::deque<Pair> pairs;
  const auto s = tensors.find("lbfgs.s");
  if (s == tensors.end()) return pairs;
  const auto rows = s->second.dim() == 2 ? s->second.size(0) : 0;
  const torch::Tensor like = torch::empty({rows, count_});
  const torch::Tensor all_s = take_tensor(tensors, "lbfgs.s", like, problems);
  const torch::Tensor all_y = take_tensor(tensors, "lbfgs.y", like, problems);
  if (!problems.empty()) return pairs;
  for (std::int64_t i = 0; i < rows; ++i) {
    pairs.push_back(make_pair(all_s[i].clone(), all_y[i].clone()));
    if (!(pairs.back().sy > 0)) {
      problems.push_back(fmt::format("lbfgs.s {} has no curvature", i));
    }
  }
  if (pairs.size() > most_pairs_) {
    problems.push_back(fmt::format(
        "lbfgs.s has {} rows, but history_size is {}", rows, most_pairs_));
  }
  return pairs;
}

std::function<void()> Lbfgs::taking(const models::NamedTensors& tensors,
                                    std::int64_t steps) {
  std::vector<std::string> problems;
  Kept kept;
  if (steps > 0) {
    kept.gradient = take_tensor(tensors, "lbfgs.gradient",
                                torch::empty({count_}), problems);
    const torch::Tensor loss = take_tensor(
        tensors, "lbfgs.loss", torch::empty({1}, torch::kDouble), problems);
    const torch::Tensor ended = take_tensor(
        tensors, "lbfgs.ended", torch::empty({1}, torch::kLong), problems);
    kept.pairs = pairs_in(tensors, problems);
    if (problems.empty()) {
      kept.loss = loss.item<double>();
      kept.ended = ended.item<std::int64_t>() != 0;
    }
  }
  if (!problems.empty()) {
    throw models::WeightsError("Lbfgs", std::move(problems));
  }
  return [this, kept = std::move(kept)]() mutable { kept_ = std::move(kept); };
}

}  // namespace polyattn::train
