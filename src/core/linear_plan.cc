#include "core/linear_plan.h"

#include <cmath>
#include <vector>

#include "core/visibility.h"

namespace polyattn {
namespace {

// Features beyond which sizes in bytes might not fit.
constexpr std::int64_t kMostFeatures = std::int64_t{1} << 32;

double value_at(const std::vector<double>& c, double x) {
  double y = 0;
  for (auto i = c.rbegin(); i != c.rend(); ++i) y = y * x + *i;
  return y;
}

// Where a polynomial with a nonzero last coefficient changes its sign or
// touches zero, as far as that shows between the turning points: enough to find
// its extremes.
std::vector<double> turning_points(const std::vector<double>& c);

std::vector<double> real_roots(const std::vector<double>& c) {
  if (c.size() < 2) return {};
  double bound = 0;
  for (double x : c) bound = std::max(bound, std::abs(x / c.back()));
  std::vector<double> stops = turning_points(c);
  stops.insert(stops.begin(), -1 - bound);
  stops.push_back(1 + bound);
  std::vector<double> roots;
  for (std::size_t i = 0; i + 1 < stops.size(); ++i) {
    double low = stops[i], high = stops[i + 1];
    const bool rising = value_at(c, low) < 0;
    if (rising == (value_at(c, high) < 0)) continue;
    for (int step = 0; step < 200 && low < high; ++step) {
      const double middle = low + (high - low) / 2;
      ((value_at(c, middle) < 0) == rising ? low : high) = middle;
    }
    roots.push_back(low);
  }
  return roots;
}

std::vector<double> turning_points(const std::vector<double>& c) {
  std::vector<double> slope;
  for (std::size_t i = 1; i < c.size(); ++i)
    slope.push_back(static_cast<double>(i) * c[i]);
  while (!slope.empty() && slope.back() == 0) slope.pop_back();
  return real_roots(slope);
}

std::int64_t chunk_of(const Problem& p, std::int64_t features) {
  // Inside a chunk the work grows with its length; between chunks a state is
  // read and written whatever their length.
  constexpr std::int64_t kMost = 6 * kStripTokens;
  std::int64_t chunk =
      p.causal != Causal::kNone && features < 512 ? 2 * kStripTokens : kMost;
  const std::int64_t longest = std::max<std::int64_t>({p.n, p.m, 1});
  // With decay there is no dense path: where it would be the faster one, the
  // sequence is a single chunk.
  constexpr std::int64_t kMostWhole = 16384;
  if (p.decays() && p.causal != Causal::kNone &&
      longest <= std::min(2 * features, kMostWhole))
    chunk = longest;
  if (p.chunk > 0) chunk = p.chunk;
  return std::min(ceil_div(chunk, kStripTokens),
                  ceil_div(longest, kStripTokens)) *
         kStripTokens;
}

// Nothing goes through a state then.
bool is_one_chunk(const Problem& p, const LinearPlan& plan) {
  return p.decays() && p.causal != Causal::kNone &&
         std::max(p.n, p.m) <= plan.chunk;
}

}  // namespace

int constant_sign(const Activation& polynomial) {
  std::vector<double> c(polynomial.coefficient.begin(),
                        polynomial.coefficient.begin() + polynomial.degree + 1);
  while (!c.empty() && c.back() == 0) c.pop_back();
  if (c.empty()) return 1;
  if (c.size() % 2 == 0) return 0;
  const double sign = c.back() > 0 ? 1 : -1;
  for (double x : turning_points(c)) {
    // What rounding may leave of a zero.
    double size = 0, power = 1;
    for (double k : c) {
      size += std::abs(k * power);
      power *= x;
    }
    if (sign * value_at(c, x) < -1e-12 * size) return 0;
  }
  return sign > 0 ? 1 : -1;
}

std::string linear_obstacle(const Problem& p) {
  const Activation& a = p.activation;
  if (a.kind != ActivationKind::kPolynomial)
    return a.to_string() + " is not a polynomial";
  if (a.divisor == Divisor::kSum && constant_sign(a) == 0)
    return a.to_string() +
           " has weights of both signs, whose absolute values are no "
           "polynomial";
  if (p.in.bias) return "a bias is added to the scores";
  if (p.dropout.p > 0) return "dropout needs each weight";
  if (p.windowed()) return "a window shows each row other keys";
  if (!rows_share_mask(p)) return "the mask differs from row to row";
  if (p.in.mask && p.in.mask->size[1] != 1 && p.in.mask->stride[1] != 0 &&
      p.heads != p.kv_heads)
    return "the mask differs among heads that share their keys";
  const std::int64_t features = count_features(a, p.d);
  if (features < 0 || features > kMostFeatures)
    return "the features of " + a.to_string() + " at width " +
           std::to_string(p.d) + " are too many to count";
  return {};
}

LinearPlan plan_linear(const Problem& p, int panel, int states) {
  // Each group of features reads all tokens again; a block of tokens is as good
  // as the whole.
  constexpr std::int64_t kWantedTasks = 8;
  constexpr std::int64_t kWantedBlocks = 256;
  constexpr std::int64_t kStateBytes = 32 << 20;
  constexpr std::int64_t kRoundTokens = 2304;
  constexpr std::int64_t kLeastGroup = 2 * kFeatureBlock;
  const bool sum = p.activation.divisor == Divisor::kSum;
  LinearPlan plan{};
  plan.features = count_features(p.activation, p.d);
  plan.columns = p.e + (sum ? 1 : 0);
  plan.panel = panel;
  plan.width = state_width(plan.columns);
  plan.sum_sign = sum ? constant_sign(p.activation) : 1;
  plan.chunk = chunk_of(p, plan.features);
  if (is_one_chunk(p, plan)) plan.features = 0;
  const std::int64_t longest = std::max<std::int64_t>(std::max(p.n, p.m), 1);
  plan.round = p.causal == Causal::kNone
                   ? 1
                   : std::clamp<std::int64_t>(kRoundTokens / plan.chunk, 1,
                                              ceil_div(longest, plan.chunk));
  const std::int64_t members = p.kv_heads > 0 ? p.heads / p.kv_heads : 0;
  // Where nothing goes through a state, what groups would give counts instead.
  const std::int64_t numbers =
      plan.features > 0 || !p.decays()
          ? states * plan.state()
          : members * plan.round_tokens() * (plan.width + p.d);
  const auto bytes = static_cast<std::int64_t>(size_of(p.compute)) *
                     std::max<std::int64_t>(numbers, 1);
  const std::int64_t pairs = std::max<std::int64_t>(plan.pairs(p), 1);
  plan.slots = std::clamp<std::int64_t>(kStateBytes / bytes, 1, pairs);
  const std::int64_t groups = std::clamp<std::int64_t>(
      plan.features / kLeastGroup, 1, ceil_div(kWantedTasks, plan.slots));
  plan.group =
      ceil_div(ceil_div(plan.features, groups), kFeatureBlock) * kFeatureBlock;
  plan.groups = std::max<std::int64_t>(
      plan.group > 0 ? ceil_div(plan.features, plan.group) : 1, 1);
  const std::int64_t blocks = ceil_div(kWantedBlocks, plan.slots);
  plan.block = ceil_div(ceil_div(longest, blocks), kStripTokens) * kStripTokens;
  return plan;
}

}  // namespace polyattn
