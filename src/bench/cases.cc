#include "bench/cases.h"

#include <fmt/format.h>

#include <algorithm>

#include "polyattn/plan.h"

namespace polyattn::bench {
namespace {

constexpr const char* kCubic = "x^3/sqrt(N)";

BenchCase make_case(Op op, std::int64_t heads, std::int64_t length,
                    std::int64_t width, const char* formula = kCubic) {
  return {.op = op,
          .activation = Activation::parse(formula),
          .h = heads,
          .g = heads,
          .n = length,
          .m = length,
          .d = width,
          .e = width};
}

Figure against_sgemm(const BenchCase& c, double goal) {
  return {
      .name = describe(c), .subject = c, .goal = Goal{Bound::kAtLeast, goal}};
}

// Heads are as many as make a call last some ten milliseconds on one core.
std::vector<Figure> sgemm_figures() {
  std::vector<Figure> figures;
  const auto forward = [&](std::int64_t heads, std::int64_t length,
                           std::int64_t width, double goal) {
    figures.push_back(
        against_sgemm(make_case(Op::kForward, heads, length, width), goal));
  };
  forward(64, 384, 64, 1.00);
  forward(16, 1024, 64, 1.00);
  forward(2, 4096, 64, 1.00);
  forward(16, 1024, 128, 1.00);
  forward(16, 1024, 32, 0.85);
  forward(16, 1025, 59, 0.65);
  forward(16, 1025, 111, 0.65);
  figures.push_back(
      against_sgemm(make_case(Op::kBackward, 16, 1024, 64), 0.85));
  figures.push_back(against_sgemm(make_case(Op::kBackward, 2, 4096, 64), 0.85));
  figures.push_back(
      against_sgemm(make_case(Op::kForward, 16, 1024, 64, "softmax"), 0.80));
  figures.push_back(
      against_sgemm(make_case(Op::kBackward, 16, 1024, 64, "softmax"), 0.75));
  // Windows of images, and small ones: short sequences that come from memory,
  // and a few that stay in the cache.
  for (const std::int64_t heads : {192, 12}) {
    for (const std::int64_t length : {49, 65, 197}) {
      forward(heads, length, 64, 0.85);
      figures.push_back(
          against_sgemm(make_case(Op::kBackward, heads, length, 64), 0.75));
    }
  }
  return figures;
}

Figure against(const BenchCase& baseline, const char* baseline_name,
               const BenchCase& subject, Measure measure,
               std::optional<Goal> goal) {
  return {.name = describe(subject),
          .subject = subject,
          .measure = measure,
          .baseline = baseline,
          .baseline_name = baseline_name,
          .goal = goal};
}

Figure causal_figure(Op op) {
  const BenchCase full = make_case(op, 2, 4096, 64);
  BenchCase c = full;
  c.causal = Causal::kFirst;
  return against(full, "full", c, Measure::kTimeRatio,
                 Goal{Bound::kAtMost, 0.58});
}

Figure stats_figure() {
  const BenchCase without = make_case(Op::kForward, 16, 1024, 64);
  BenchCase c = without;
  c.stats = true;
  return against(without, "without", c, Measure::kTimeRatio,
                 Goal{Bound::kAtMost, 1.05});
}

Figure bf16_figure(Op op) {
  const BenchCase single = make_case(op, 16, 1024, 64);
  BenchCase c = single;
  c.dtype = DType::kBF16;
  return against(single, "f32", c, Measure::kSpeedup,
                 Goal{Bound::kAtLeast, 0.95});
}

Figure scaling_figure(const BenchCase& alone, int threads) {
  BenchCase c = alone;
  c.threads = threads;
  std::optional<Goal> goal;
  if (threads == 2) goal = Goal{Bound::kAtLeast, 1.85};
  return against(alone, "1 thread", c, Measure::kSpeedup, goal);
}

Figure memory_figure(Op op, int threads) {
  BenchCase c = make_case(op, 1, 65536, 64);
  c.threads = threads;
  return {.name = describe(c),
          .subject = c,
          .measure = Measure::kMegabytes,
          .goal = Goal{Bound::kAtMost, 64}};
}

std::vector<Figure> for_each_count(const std::vector<Figure>& figures,
                                   const std::vector<int>& threads) {
  std::vector<Figure> result;
  for (Figure figure : figures) {
    for (const int count : threads) {
      figure.subject.threads = count;
      if (figure.baseline) figure.baseline->threads = count;
      result.push_back(figure);
    }
  }
  return result;
}

double linear_flops(const BenchCase& c) {
  const auto features = static_cast<double>(
      estimate_paths(shape_of(c), config_of(c), Direction::kForward).features);
  const double tokens =
      static_cast<double>(c.b * c.h) * static_cast<double>(c.n) +
      static_cast<double>(c.b * c.g) * static_cast<double>(c.m);
  const double products = c.op == Op::kForward ? 1 : 2;
  return 2 * products * tokens * features * static_cast<double>(c.e);
}

}  // namespace

const char* name_of(Op op) {
  return op == Op::kForward ? "forward" : "backward";
}

AttentionInputs shape_of(const BenchCase& c) {
  const auto shape = [&](std::int64_t heads, std::int64_t rows,
                         std::int64_t width) {
    const Extents size = {c.b, heads, rows, width};
    return ConstTensor{nullptr, c.dtype, size, contiguous_strides(size)};
  };
  AttentionInputs inputs;
  inputs.q = shape(c.h, c.n, c.d);
  inputs.k = shape(c.g, c.m, c.d);
  inputs.v = shape(c.g, c.m, c.e);
  return inputs;
}

AttentionConfig config_of(const BenchCase& c) {
  AttentionConfig config;
  config.activation = c.activation;
  config.causal = c.causal;
  config.path = c.path;
  if (c.dtype == DType::kF64) config.compute = DType::kF64;
  return config;
}

double flops_of(const BenchCase& c) {
  if (c.path == Path::kLinear) return linear_flops(c);
  const auto d = static_cast<double>(c.d);
  const auto e = static_cast<double>(c.e);
  const double widths = c.op == Op::kForward ? d + e : 3 * d + 2 * e;
  const double pairs = static_cast<double>(c.b * c.h) *
                       static_cast<double>(c.n) * static_cast<double>(c.m);
  return 2 * pairs * widths * (c.causal == Causal::kNone ? 1.0 : 0.5);
}

bool reaches(const Goal& goal, double value) {
  return goal.bound == Bound::kAtLeast ? value >= goal.value
                                       : value <= goal.value;
}

std::vector<Figure> standard_figures(const std::vector<int>& threads) {
  std::vector<Figure> base = sgemm_figures();
  for (const Op op : {Op::kForward, Op::kBackward}) {
    base.push_back(causal_figure(op));
  }
  base.push_back(stats_figure());
  for (const Op op : {Op::kForward, Op::kBackward}) {
    base.push_back(bf16_figure(op));
  }
  std::vector<Figure> figures = for_each_count(base, threads);
  for (const int count : threads) {
    if (count == 1) continue;
    for (const Op op : {Op::kForward, Op::kBackward}) {
      figures.push_back(scaling_figure(make_case(op, 16, 1024, 64), count));
      figures.push_back(scaling_figure(make_case(op, 1, 4096, 64), count));
    }
  }
  const int most = *std::max_element(threads.begin(), threads.end());
  for (const Op op : {Op::kForward, Op::kBackward}) {
    figures.push_back(memory_figure(op, most));
  }
  return figures;
}

std::vector<Figure> quick_figures(const std::vector<int>& threads) {
  return for_each_count(
      {against_sgemm(make_case(Op::kForward, 8, 1024, 64), 1.00),
       against_sgemm(make_case(Op::kBackward, 8, 1024, 64), 0.85),
       against_sgemm(make_case(Op::kForward, 8, 1024, 64, "softmax"), 0.80),
       against_sgemm(make_case(Op::kBackward, 8, 1024, 64, "softmax"), 0.75)},
      threads);
}

std::string describe(const BenchCase& c) {
  std::string text =
      fmt::format("{} {} N={}", name_of(c.op), c.activation.to_string(), c.n);
  if (c.m != c.n) text += fmt::format(" M={}", c.m);
  text += fmt::format(" D={}", c.d);
  if (c.e != c.d) text += fmt::format(" E={}", c.e);
  text += fmt::format(" B·H={}", c.b * c.h);
  if (c.g != c.h) text += fmt::format(" G={}", c.g);
  if (c.dtype != DType::kF32) {
    text += fmt::format(" {}", polyattn::name_of(c.dtype));
  }
  if (c.causal != Causal::kNone) text += " causal";
  if (c.causal == Causal::kLast) text += "-last";
  if (c.stats) text += " +statistics";
  if (c.path != Path::kDense) text += fmt::format(" {}", name_of(c.path));
  return text;
}

}  // namespace polyattn::bench
