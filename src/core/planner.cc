#include "core/planner.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <stdexcept>
#include <string>

#include "core/kernels/kernels.h"
#include "core/linear_plan.h"

namespace polyattn {
namespace {

// What is counted in a call.
struct Work {
  double heads = 0;    // of all sequences
  double queries = 0;  // of all heads
  double keys = 0;     // of all key heads
  double strips = 0;   // tokens, where a strip that is not full counts as full
  double pairs = 0;    // of a query and a key that it may see
  double edges = 0;    // causal: times at which queries and keys are aligned
};

double in_strips(std::int64_t tokens) {
  return static_cast<double>(ceil_div(tokens, kStripTokens) * kStripTokens);
}

// The sum of min(max(first + i, 0), m) over i = 0 .. n - 1.
double sum_of_bounded(std::int64_t first, std::int64_t n, std::int64_t m) {
  const std::int64_t below = std::clamp<std::int64_t>(-first, 0, n);
  const std::int64_t above = std::clamp<std::int64_t>(first + n - m, 0, n);
  const std::int64_t between = std::max<std::int64_t>(n - below - above, 0);
  const auto least = static_cast<double>(first + below);
  const auto count = static_cast<double>(between);
  return count * least + count * (count - 1) / 2 +
         static_cast<double>(above) * static_cast<double>(m);
}

// Pairs of a query and a key of one head that causality and a window leave.
double windowed_pairs(const Problem& p, const Sequence& s) {
  const std::int64_t own = p.causal == Causal::kLast ? s.m - s.n : 0;
  const std::int64_t ahead = p.causal == Causal::kNone ? p.window.right : 0;
  const double ends = ahead < 0
                          ? static_cast<double>(s.n) * static_cast<double>(s.m)
                          : sum_of_bounded(own + ahead + 1, s.n, s.m);
  const double begins =
      p.window.left < 0 ? 0 : sum_of_bounded(own - p.window.left, s.n, s.m);
  return ends - begins;
}

Work work_of(const Problem& p) {
  Work work;
  const auto heads = static_cast<double>(p.heads);
  for (std::int64_t b = 0; b < p.batch; ++b) {
    const Sequence s = p.sequence(b);
    const auto n = static_cast<double>(s.n), m = static_cast<double>(s.m);
    const auto kv_heads = static_cast<double>(p.kv_heads);
    work.heads += heads;
    work.queries += heads * n;
    work.keys += kv_heads * m;
    work.strips += heads * in_strips(s.n) + kv_heads * in_strips(s.m);
    if (p.windowed()) {
      work.pairs += heads * windowed_pairs(p, s);
      continue;
    }
    if (p.causal == Causal::kNone) {
      work.pairs += heads * n * m;
      continue;
    }
    const TimeLine line(p, s);
    // Queries with a key of their own time, after the keys before the first.
    const double before =
        static_cast<double>(std::max<std::int64_t>(line.shift, 0));
    const double own = std::max(static_cast<double>(line.keys) - before, 0.0);
    const double after =
        static_cast<double>(line.length) - static_cast<double>(line.keys);
    work.pairs +=
        heads * (own * before + own * (own + 1) / 2 +
                 std::max(after, 0.0) * static_cast<double>(line.keys));
    work.edges += heads * own;
  }
  return work;
}

std::int64_t state_bytes(const Problem& p, Direction direction) {
  const LinearPlan plan = plan_linear(
      p,
      p.compute == DType::kF64 ? strip_width<double>() : strip_width<float>(),
      1);
  const std::int64_t states = direction == Direction::kForward ? 1 : 2;
  return plan.state() * states * static_cast<std::int64_t>(size_of(p.compute));
}

// States that a call should not take unless it is asked to.
constexpr std::int64_t kMostStateBytes = std::int64_t{1} << 30;

std::string text_of(double ratio) {
  std::string text = std::to_string(ratio);
  return text.substr(0, text.find('.') + 2);
}

// The choice of Path::kAuto among two paths.
Path faster(double dense, double linear, std::string& reason) {
  const bool is_linear = linear < dense;
  const double ratio = is_linear ? dense / linear : linear / dense;
  reason =
      std::string(is_linear ? "linear" : "dense") + " is expected to be faster";
  // A call without tokens may take no time.
  if (std::isfinite(ratio)) reason += ", by a factor of " + text_of(ratio);
  return is_linear ? Path::kLinear : Path::kDense;
}

// Without a look at times, where the numbers of multiplications are far apart.
bool decide_by_counts(const Problem& p, Path& path) {
  const Work work = work_of(p);
  const auto features = static_cast<double>(count_features(p.activation, p.d));
  const double dense = work.pairs * static_cast<double>(p.d + p.e);
  const double linear = (work.queries + work.keys) * features *
                        static_cast<double>(std::max<std::int64_t>(p.e, 8));
  constexpr double kFar = 12;
  if (linear > kFar * dense) path = Path::kDense;
  if (dense > kFar * linear && features > 0) path = Path::kLinear;
  return linear > kFar * dense || (dense > kFar * linear && features > 0);
}

const PathCost& cost_of(const PathCosts& costs, Direction direction) {
  return direction == Direction::kForward ? costs.forward : costs.backward;
}

// For checks that want data where there are sizes; nothing reads it.
AttentionInputs with_some_data(AttentionInputs in) {
  static constexpr std::byte kNothing{};
  for (ConstTensor* t : {&in.q, &in.k, &in.v})
    if (t->data == nullptr) t->data = &kNothing;
  return in;
}

[[noreturn]] void refuse(const char* op, const std::string& obstacle) {
  throw std::invalid_argument("[" + std::string(op) +
                              "] no linear path: " + obstacle);
}

}  // namespace

Path path_of_environment() {
  const char* text = std::getenv("POLYATTN_PLAN");
  const std::string wish = text == nullptr ? "" : text;
  if (wish.empty() || wish == "auto") return Path::kAuto;
  if (wish == "dense") return Path::kDense;
  if (wish == "linear") return Path::kLinear;
  throw std::invalid_argument("[plan] POLYATTN_PLAN is \"" + wish +
                              "\"; it must be dense, linear or auto");
}

double predict_dense(const Problem& p, const PathCost& cost) {
  const Work work = work_of(p);
  const auto widths = static_cast<double>(p.d + p.e);
  return 1e-9 * ((work.queries + work.keys) * widths * cost.row +
                 work.pairs * (cost.pair + widths * cost.pair_width));
}

double predict_linear(const Problem& p, Direction direction,
                      const PathCost& cost) {
  const Work work = work_of(p);
  const int strip =
      p.compute == DType::kF64 ? strip_width<double>() : strip_width<float>();
  const LinearPlan plan = plan_linear(p, strip, 1);
  const auto widths = static_cast<double>(p.d + p.e);
  const double tokens = work.queries + work.keys;
  const double feature =
      cost.feature + static_cast<double>(plan.width) * cost.feature_width;
  double total = work.heads * cost.head + tokens * widths * cost.token +
                 work.strips * static_cast<double>(plan.features) * feature;
  if (p.causal == Causal::kNone) return 1e-9 * total;
  // Inside chunks; backward does a part of it twice. What the groups give goes
  // through memory.
  const double times = direction == Direction::kForward ? 1 : 1.4;
  const double own = work.edges * static_cast<double>(plan.chunk + 1) / 2;
  total += times * (own * (cost.pair + widths * cost.pair_width) +
                    2 * work.edges * widths * cost.row);
  total += static_cast<double>(plan.groups) * tokens * widths * cost.token;
  total += tokens * cost.step;
  return 1e-9 * total;
}

Path choose_path(const char* op, const Problem& p, Direction direction) {
  if (p.decays()) {
    const std::string obstacle = linear_obstacle(p);
    if (!obstacle.empty()) refuse(op, obstacle);
    return Path::kLinear;
  }
  if (p.path == Path::kDense) return Path::kDense;
  const std::string obstacle = linear_obstacle(p);
  if (p.path == Path::kLinear) {
    if (!obstacle.empty()) refuse(op, obstacle);
    return Path::kLinear;
  }
  const Path wish = path_of_environment();
  if (!obstacle.empty()) return Path::kDense;
  if (wish != Path::kAuto) return wish;
  Path path = Path::kDense;
  if (state_bytes(p, direction) > kMostStateBytes) return path;
  if (decide_by_counts(p, path)) return path;
  const PathCosts costs = path_costs();
  const PathCost& cost = cost_of(costs, direction);
  return predict_linear(p, direction, cost) < predict_dense(p, cost)
             ? Path::kLinear
             : Path::kDense;
}

PathEstimate estimate_paths(const AttentionInputs& inputs,
                            const AttentionConfig& config,
                            Direction direction) {
  constexpr char kOp[] = "estimate_paths";
  const Problem p = check_problem(kOp, with_some_data(inputs), config);
  const PathCosts costs = path_costs();
  const PathCost& cost = cost_of(costs, direction);
  PathEstimate result;
  result.path = choose_path(kOp, p, direction);
  result.obstacle = linear_obstacle(p);
  result.dense_seconds = predict_dense(p, cost);
  if (!result.obstacle.empty()) {
    result.reason = "there is no linear path: " + result.obstacle;
    return result;
  }
  result.features = count_features(p.activation, p.d);
  result.state_bytes = state_bytes(p, direction);
  result.linear_seconds = predict_linear(p, direction, cost);
  if (p.decays()) {
    result.reason =
        "a call with decay always takes it; a short sequence is one chunk";
  } else if (p.path != Path::kAuto) {
    result.reason = "the path was asked for";
  } else if (path_of_environment() != Path::kAuto) {
    result.reason = "POLYATTN_PLAN asks for it";
  } else if (result.state_bytes > kMostStateBytes) {
    result.reason = "the state of the linear path would take over 1 GB";
  } else {
    const Path best =
        faster(result.dense_seconds, result.linear_seconds, result.reason);
    if (best != result.path)
      result.reason = "the counts of multiplications are far apart";
  }
  return result;
}

}  // namespace polyattn
