#include "bench/torch_comparisons.h"

#include <ATen/Version.h>
#include <fmt/format.h>
#include <malloc.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <stdexcept>
#include <vector>

#include "base/machine.h"
#include "bench/check_equal.h"
#include "bench/eager_attention.h"
#include "bench/windows.h"
#include "polyattn/nn/block.h"
#include "polyattn/torch/attention.h"

namespace polyattn::bench {
namespace {

constexpr const char* kCubic = "x^3/sqrt(N)";

struct Shape {
  std::int64_t b, h, n, d;
  std::int64_t windows = 0;  // of each image: [B, W, H, N, D], N a square
};

struct Inputs {
  torch::Tensor q, k, v, d_o;
  Windows windows = {};

  // Zeroed between passes, as an optimiser does; otherwise they add up.
  void forget_gradients() {
    for (torch::Tensor* t : {&q, &k, &v, &windows.bias})
      if (t->defined()) t->mutable_grad().reset();
  }
};

using Attend = std::function<torch::Tensor(const Inputs&)>;

torch::Tensor eager_scores(const Inputs& in) {
  const double scale = 1 / std::sqrt(static_cast<double>(in.q.size(-1)));
  return torch::matmul(in.q * scale, in.k.transpose(-2, -1));
}

// matmul, multiply, matmul. The divisor goes into v, which is smaller than A.
torch::Tensor eager_cubic(const Inputs& in) {
  const torch::Tensor s = eager_scores(in);
  const double divisor = std::sqrt(static_cast<double>(in.k.size(2)));
  return torch::matmul(s * s * s, in.v / divisor);
}

torch::Tensor eager_softmax(const Inputs& in) {
  return torch::matmul(torch::softmax(eager_scores(in), -1), in.v);
}

torch::Tensor eager_windows_softmax(const Inputs& in) {
  const torch::Tensor s = eager_scores(in) + in.windows.bias;
  return torch::matmul(torch::softmax(s + in.windows.added, -1), in.v);
}

torch::Tensor eager_windows_cubic(const Inputs& in) {
  const torch::Tensor s = eager_scores(in) + in.windows.bias;
  return torch::matmul(s * s * s * in.windows.divided, in.v);
}

Attend fused_windows(const std::string& activation) {
  return [options =
              AttentionOptions().activation(activation)](const Inputs& in) {
    return attention(
        in.q, in.k, in.v,
        AttentionOptions(options).mask(in.windows.mask).bias(in.windows.bias));
  };
}

Attend fused(const std::string& activation) {
  return [options = AttentionOptions().activation(activation)](
             const Inputs& in) { return attention(in.q, in.k, in.v, options); };
}

Inputs draw(const Shape& shape, std::uint64_t seed) {
  torch::manual_seed(seed);
  std::vector<std::int64_t> size = {shape.b, shape.h, shape.n, shape.d};
  if (shape.windows > 0) size.insert(size.begin() + 1, shape.windows);
  const auto rows = [&] { return torch::randn(size); };
  Inputs in{rows().requires_grad_(), rows().requires_grad_(),
            rows().requires_grad_(), rows()};
  const auto side = std::lround(std::sqrt(static_cast<double>(shape.n)));
  if (shape.windows > 0)
    in.windows = draw_windows(shape.windows, shape.h, side);
  return in;
}

std::function<void()> forward_call(const Attend& attend,
                                   const std::shared_ptr<Inputs>& in) {
  return [attend, in] {
    const torch::NoGradGuard no_grad;
    attend(*in);
  };
}

std::function<void()> training_call(const Attend& attend,
                                    const std::shared_ptr<Inputs>& in) {
  return [attend, in] {
    in->forget_gradients();
    attend(*in).backward(in->d_o);
  };
}

struct Pair {
  std::string activation;
  Attend ours, theirs;
};

Pair cubic() { return {kCubic, fused(kCubic), eager_cubic}; }
Pair softmax() { return {"softmax", fused("softmax"), eager_softmax}; }

Pair windows_cubic() {
  return {kCubic, fused_windows(kCubic), eager_windows_cubic};
}
Pair windows_softmax() {
  return {"softmax", fused_windows("softmax"), eager_windows_softmax};
}

std::string label_of(const Shape& shape) {
  if (shape.windows == 0)
    return fmt::format("[{},{},{},{}]", shape.b, shape.h, shape.n, shape.d);
  return fmt::format("[{},{},{},{},{}] with bias and mask", shape.b,
                     shape.windows, shape.h, shape.n, shape.d);
}

enum class Pass { kForward, kTraining };

Comparison attention_comparison(const Pair& pair, const Shape& shape, Pass pass,
                                std::optional<double> goal) {
  const bool forward = pass == Pass::kForward;
  Comparison comparison;
  comparison.name =
      fmt::format("{} {} {}", forward ? "forward" : "forward and backward",
                  pair.activation, label_of(shape));
  comparison.baseline_name = "eager " + pair.activation;
  comparison.goal = goal;
  comparison.effort =
      static_cast<double>(shape.b * std::max<std::int64_t>(shape.windows, 1) *
                          shape.h * shape.n * shape.n) *
      (forward ? 1 : 3);
  comparison.prepare = [=](std::uint64_t seed) -> Calls {
    const auto in = std::make_shared<Inputs>(draw(shape, seed));
    check_equal(comparison.name, pair.ours(*in), pair.theirs(*in));
    if (forward) {
      return {forward_call(pair.ours, in), forward_call(pair.theirs, in)};
    }
    return {training_call(pair.ours, in), training_call(pair.theirs, in)};
  };
  return comparison;
}

// A weight that is linear in the score against softmax: the same work for a
// model, not the same function. The check is against k^T v, made first.
Comparison first_degree_comparison(double goal) {
  const Shape shape{1, 1, 16384, 64};
  const std::string activation = "x/sqrt(N)";
  Comparison comparison;
  comparison.name = fmt::format("forward {} [{},{},{},{}] against softmax",
                                activation, shape.b, shape.h, shape.n, shape.d);
  comparison.baseline_name = "eager softmax";
  comparison.goal = goal;
  comparison.effort = static_cast<double>(shape.n * shape.n);
  comparison.prepare = [=](std::uint64_t seed) -> Calls {
    const auto in = std::make_shared<Inputs>(draw(shape, seed));
    const torch::NoGradGuard no_grad;
    const double scale = 1 / std::sqrt(static_cast<double>(shape.d * shape.n));
    const auto sums = torch::matmul(in->k.transpose(2, 3), in->v * scale);
    check_equal(comparison.name, fused(activation)(*in),
                torch::matmul(in->q, sums));
    return {forward_call(fused(activation), in),
            forward_call(eager_softmax, in)};
  };
  return comparison;
}

// Batch of 16 images of 196 patches and a class token.
constexpr std::int64_t kImages = 16, kTokens = 197, kTinyDim = 192,
                       kTinyHeads = 3;

nn::Block tiny_block(const std::string& activation, bool fused) {
  nn::BlockOptions options(kTinyDim, kTinyHeads);
  options.attention().activation(activation);
  nn::Block block(options);
  if (!fused) make_eager(*block);
  return block;
}

void copy_parameters(nn::Block from, nn::Block to) {
  const torch::NoGradGuard no_grad;
  for (const auto& item : from->named_parameters()) {
    to->named_parameters()[item.key()].copy_(item.value());
  }
}

std::function<void()> block_call(nn::Block block, const torch::Tensor& x,
                                 const torch::Tensor& dy) {
  return [=]() mutable {
    block->zero_grad();
    x.mutable_grad().reset();
    block->forward(x).backward(dy);
  };
}

Comparison block_comparison(const std::string& activation,
                            std::optional<double> goal) {
  Comparison comparison;
  comparison.name = fmt::format(
      "ViT-Tiny block, forward and backward, {}, N = {}", activation, kTokens);
  comparison.baseline_name = "the block with eager softmax";
  comparison.goal = goal;
  comparison.effort = 5e7;
  comparison.prepare = [=](std::uint64_t seed) -> Calls {
    torch::manual_seed(seed);
    const torch::Tensor x =
        torch::randn({kImages, kTokens, kTinyDim}).requires_grad_();
    const torch::Tensor dy = torch::randn({kImages, kTokens, kTinyDim});
    nn::Block ours = tiny_block(activation, true);
    nn::Block same = tiny_block(activation, false);
    nn::Block theirs = tiny_block("softmax", false);
    copy_parameters(ours, same);
    copy_parameters(ours, theirs);
    check_equal(comparison.name, ours->forward(x), same->forward(x));
    return {block_call(ours, x, dy), block_call(theirs, x, dy)};
  };
  return comparison;
}

// Softmax of the last keys alone: against the same without a window, which is
// what a long text would cost, or against libtorch with the window as a matrix.
struct SlidingWindow {
  std::int64_t tokens, keys;
  Pass pass;
  bool against_matrix;
};

Attend sliding(const Window& window) {
  return [options = AttentionOptions().causal(true).window(window)](
             const Inputs& in) { return attention(in.q, in.k, in.v, options); };
}

torch::Tensor eager_band(const Inputs& in) {
  return torch::matmul(torch::softmax(eager_scores(in) + in.windows.added, -1),
                       in.v);
}

// [N, N]: 0 for the last `keys` keys of a row, -inf for the others.
torch::Tensor band(std::int64_t tokens, std::int64_t keys) {
  const auto seen =
      torch::ones({tokens, tokens}, torch::kBool).tril().triu(1 - keys);
  return torch::zeros({tokens, tokens})
      .masked_fill(~seen, -std::numeric_limits<double>::infinity());
}

Comparison window_comparison(const SlidingWindow& c) {
  const bool forward = c.pass == Pass::kForward;
  const Shape shape{1, 4, c.tokens, 64};
  Comparison comparison;
  comparison.name = fmt::format("{} causal softmax {}, window of {} keys",
                                forward ? "forward" : "forward and backward",
                                label_of(shape), c.keys);
  comparison.baseline_name = c.against_matrix ? "eager, the window as a matrix"
                                              : "ours without a window";
  comparison.effort =
      static_cast<double>(shape.h * c.tokens * c.tokens) * (forward ? 1 : 3);
  comparison.prepare = [=](std::uint64_t seed) -> Calls {
    const auto in = std::make_shared<Inputs>(draw(shape, seed));
    const Attend ours = sliding({c.keys - 1, 0});
    const Attend theirs =
        c.against_matrix ? Attend(eager_band) : sliding(Window{});
    if (c.against_matrix) in->windows.added = band(c.tokens, c.keys);
    // Without a window the first rows see the same keys, and they alone.
    const auto rows = c.against_matrix ? c.tokens : c.keys;
    check_equal(comparison.name, ours(*in).narrow(2, 0, rows),
                theirs(*in).narrow(2, 0, rows));
    const auto call = forward ? forward_call : training_call;
    return {call(ours, in), call(theirs, in)};
  };
  return comparison;
}

std::vector<Comparison> window_comparisons() {
  std::vector<Comparison> rows;
  for (const std::int64_t keys : {64, 256}) {
    for (const Pass pass : {Pass::kForward, Pass::kTraining}) {
      rows.push_back(window_comparison({4096, keys, pass, true}));
      for (const std::int64_t tokens : {4096, 16384})
        rows.push_back(window_comparison({tokens, keys, pass, false}));
    }
  }
  return rows;
}

Comparison memory_comparison(const Pair& pair, const Shape& shape,
                             double goal) {
  Comparison comparison =
      attention_comparison(pair, shape, Pass::kTraining, goal);
  comparison.name = "peak memory, " + comparison.name;
  comparison.unit = "MB";
  comparison.effort /= 3;
  return comparison;
}

Samples weigh(const Calls& calls) {
  Samples samples;
  for (int i = 0; i < 3; ++i) {
    samples.ours.push_back(peak_megabytes(calls.ours));
    samples.baseline.push_back(peak_megabytes(calls.baseline));
  }
  return samples;
}

}  // namespace

TorchThreads::TorchThreads(int threads) : before_(at::get_num_threads()) {
  at::set_num_threads(threads);
}

TorchThreads::~TorchThreads() { at::set_num_threads(before_); }

double peak_megabytes(const std::function<void()>& call) {
  ::malloc_trim(0);  // pages that free() kept would hide the next ones
  const base::PeakMemory memory;
  call();
  const auto growth = memory.growth();
  if (!growth) throw std::runtime_error("[bench] /proc tells no peak memory");
  return static_cast<double>(*growth) / 1e6;
}

void check_equal(const std::string& name, const torch::Tensor& ours,
                 const torch::Tensor& theirs) {
  const double error = (ours - theirs).abs().max().item<double>();
  const double size = theirs.abs().max().item<double>();
  if (!(error <= 1e-3 * size)) {
    throw std::runtime_error(
        fmt::format("[bench] {}: ours and the baseline differ by {:.3g}, the "
                    "largest value is {:.3g}",
                    name, error, size));
  }
}

std::vector<Comparison> torch_comparisons(bool quick) {
  const Shape vision{16, 12, 196, 64}, text{1, 12, 1024, 64},
      length{1, 4, 4096, 64}, windows{64, 3, 49, 32, 4},
      wider{64, 4, 64, 32, 4};
  std::vector<Comparison> comparisons = {
      attention_comparison(cubic(), vision, Pass::kForward, 1.8),
      attention_comparison(cubic(), text, Pass::kForward, 2.5),
      attention_comparison(cubic(), vision, Pass::kTraining, 1.8),
      attention_comparison(cubic(), text, Pass::kTraining, 2.2),
      attention_comparison(softmax(), text, Pass::kForward, 1.4),
      block_comparison("softmax", 1.2),
      block_comparison(kCubic, 1.2)};
  if (quick) return comparisons;
  std::vector<Comparison> rest = {
      attention_comparison(cubic(), length, Pass::kForward, 4),
      attention_comparison(cubic(), length, Pass::kTraining, 3),
      attention_comparison(softmax(), length, Pass::kForward, 2.5),
      attention_comparison(softmax(), vision, Pass::kTraining, std::nullopt),
      attention_comparison(softmax(), length, Pass::kTraining, std::nullopt),
      first_degree_comparison(200),
      memory_comparison(cubic(), length, 8),
      memory_comparison(softmax(), length, 8)};
  for (const Shape& shape : {windows, wider}) {
    for (const Pair& pair : {windows_softmax(), windows_cubic()}) {
      for (const Pass pass : {Pass::kForward, Pass::kTraining})
        rest.push_back(attention_comparison(pair, shape, pass, 1.5));
    }
  }
  comparisons.insert(comparisons.end(), rest.begin(), rest.end());
  for (const Comparison& comparison : window_comparisons())
    comparisons.push_back(comparison);
  return comparisons;
}

Row run_comparison(const Comparison& comparison, int threads,
                   const RunOptions& options) {
  const TorchThreads own(threads);
  Row row{.name = comparison.name,
          .threads = threads,
          .unit = comparison.unit,
          .baseline_name = comparison.baseline_name,
          .mode = torch_capability(),
          .items = static_cast<double>(comparison.items),
          .item_name = comparison.item_name};
  if (comparison.goal) row.goal = Goal{Bound::kAtLeast, *comparison.goal};
  const Calls calls = comparison.prepare(options.seed);
  summarise(row.unit == "MB" ? weigh(calls) : take_turns(calls, options.rounds),
            row);
  return row;
}

std::string torch_capability() {
  const std::string config = at::show_config();
  const std::string label = "CPU capability usage: ";
  const std::size_t start = config.find(label);
  if (start == std::string::npos) return "unknown";
  const std::size_t value = start + label.size();
  return config.substr(value, config.find('\n', value) - value);
}

}  // namespace polyattn::bench
