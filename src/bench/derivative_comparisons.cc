#include "bench/derivative_comparisons.h"

#include <fmt/format.h>
#include <torch/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/check_equal.h"
#include "bench/eager_attention.h"
#include "polyattn/torch/attention.h"

namespace polyattn::bench {
namespace {

using Tensors = std::vector<torch::Tensor>;
using Attend = std::function<torch::Tensor(const Tensors&)>;

struct Shape {
  std::int64_t b, h, n, d;
  std::string label() const { return fmt::format("[{},{},{},{}]", b, h, n, d); }
};

// q, k, v and d_o, and the cotangents of the gradients by the first three.
struct Inputs {
  Tensors leaves, cotangents;
};

Inputs draw(const Shape& shape, std::uint64_t seed) {
  torch::manual_seed(seed);
  Inputs in;
  for (int i = 0; i < 7; ++i) {
    const auto t = torch::randn({shape.b, shape.h, shape.n, shape.d});
    (i < 4 ? in.leaves : in.cotangents).push_back(t);
    if (i < 4) in.leaves.back().requires_grad_();
  }
  return in;
}

Attend fused(const std::string& activation) {
  return [options = AttentionOptions().activation(activation)](
             const Tensors& t) { return attention(t[0], t[1], t[2], options); };
}

Attend eager(const std::string& activation) {
  return [activation](const Tensors& t) {
    const double scale = 1 / std::sqrt(static_cast<double>(t[0].size(-1)));
    return eager_attention(
        t[0], t[1], t[2],
        AttentionOptions().activation(activation).scale(scale));
  };
}

Tensors first_derivatives(const Attend& attend, const Inputs& in) {
  return torch::autograd::grad(
      {attend(in.leaves)}, {in.leaves[0], in.leaves[1], in.leaves[2]},
      {in.leaves[3]}, /*retain_graph=*/true, /*create_graph=*/true);
}

Tensors second_derivatives(const Tensors& first, const Inputs& in) {
  return torch::autograd::grad(first, in.leaves, in.cotangents,
                               /*retain_graph=*/true);
}

Tensors all_passes(const Attend& attend, const Inputs& in) {
  return second_derivatives(first_derivatives(attend, in), in);
}

Comparison comparison_of(const std::string& pass, const std::string& activation,
                         const Shape& shape, std::optional<double> goal) {
  Comparison comparison;
  comparison.name = fmt::format("{} {} {}", pass, activation, shape.label());
  comparison.baseline_name = "eager " + activation;
  comparison.goal = goal;
  comparison.effort =
      static_cast<double>(shape.b * shape.h * shape.n * shape.n * 8);
  return comparison;
}

void check_all(const std::string& name, const Tensors& ours,
               const Tensors& theirs) {
  for (std::size_t i = 0; i < ours.size(); ++i)
    check_equal(name, ours[i], theirs[i]);
}

// The step itself, of a graph that is there. What the fused op had in its place
// is torch's derivative of the definition: forward and backward once more, as
// the scores were not kept, and then theirs.
Comparison step_comparison(const std::string& activation, const Shape& shape,
                           std::optional<double> goal) {
  Comparison comparison =
      comparison_of("double backward", activation, shape, goal);
  comparison.baseline_name = "torch ops, recomputed";
  comparison.prepare = [=](std::uint64_t seed) -> Calls {
    const auto in = std::make_shared<Inputs>(draw(shape, seed));
    const Tensors first = first_derivatives(fused(activation), *in);
    const Attend theirs = eager(activation);
    check_all(comparison.name, second_derivatives(first, *in),
              all_passes(theirs, *in));
    return {[=] { second_derivatives(first, *in); },
            [=] { all_passes(theirs, *in); }};
  };
  return comparison;
}

// Forward, backward and double backward of both.
Comparison whole_comparison(const std::string& activation, const Shape& shape,
                            std::optional<double> goal) {
  Comparison comparison = comparison_of("forward, backward and double backward",
                                        activation, shape, goal);
  comparison.prepare = [=](std::uint64_t seed) -> Calls {
    const auto in = std::make_shared<Inputs>(draw(shape, seed));
    const Attend ours = fused(activation), theirs = eager(activation);
    check_all(comparison.name, all_passes(ours, *in), all_passes(theirs, *in));
    return {[=] { all_passes(ours, *in); }, [=] { all_passes(theirs, *in); }};
  };
  return comparison;
}

Comparison memory_comparison(const std::string& activation, const Shape& shape,
                             double goal) {
  Comparison comparison = step_comparison(activation, shape, goal);
  comparison.name = "peak memory, " + comparison.name;
  comparison.unit = "MB";
  return comparison;
}

}  // namespace

std::vector<Comparison> derivative_comparisons(bool quick) {
  const Shape vision{16, 12, 197, 64}, text{1, 12, 1024, 64},
      length{1, 4, 4096, 64}, physics{2601, 2, 5, 16};
  const std::string cubic = "x^3/sqrt(N)", softmax = "softmax";
  std::vector<Comparison> comparisons = {step_comparison(cubic, vision, 2),
                                         step_comparison(softmax, vision, 1.4),
                                         step_comparison(cubic, text, 2),
                                         step_comparison(softmax, text, 1.4),
                                         whole_comparison(cubic, physics, 2),
                                         whole_comparison(softmax, physics, 2)};
  if (quick) return comparisons;
  for (const std::string& activation : {cubic, softmax}) {
    for (const Shape& shape : {vision, text})
      comparisons.push_back(whole_comparison(activation, shape, std::nullopt));
    comparisons.push_back(memory_comparison(activation, length, 8));
  }
  return comparisons;
}

}  // namespace polyattn::bench
