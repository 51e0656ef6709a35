#include "polyattn/norms.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/decay.h"
#include "core/linear_plan.h"
#include "core/planner.h"
#include "core/problem.h"
#include "core/workspace.h"
#include "polyattn/reference.h"

namespace polyattn {
namespace {

constexpr char kNorms[] = "attention_norms";

using Coefficients = std::vector<double>;

Coefficients times(const Coefficients& a, const Coefficients& b) {
  Coefficients product(a.size() + b.size() - 1);
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < b.size(); ++j) product[i + j] += a[i] * b[j];
  return product;
}

Coefficients derivative(const Coefficients& a) {
  Coefficients slope(std::max<std::size_t>(a.size(), 2) - 1);
  for (std::size_t i = 1; i < a.size(); ++i)
    slope[i - 1] = static_cast<double>(i) * a[i];
  return slope;
}

// The polynomials whose sums over a row are wanted.
struct RowPolynomials {
  Coefficients weight;                // w, for `sum`
  Coefficients weight_sq;             // w^2
  Coefficients derivative_sq;         // w'^2
  Coefficients derivative_sq_weight;  // w'^2 w, for `sum`
};

RowPolynomials polynomials_of(const Activation& a) {
  const Coefficients w(a.coefficient.begin(),
                       a.coefficient.begin() + a.degree + 1);
  const Coefficients slope = derivative(w);
  RowPolynomials result{{}, times(w, w), times(slope, slope), {}};
  if (a.divisor != Divisor::kSum) return result;
  result.weight = w;
  result.derivative_sq_weight = times(result.derivative_sq, w);
  return result;
}

// The Jacobian of `sum` is a difference, of which f32 may leave nothing; and
// f32 does not hold the squares of all that it holds.
bool needs_f64(const Activation& a) {
  const RowPolynomials sums = polynomials_of(a);
  const auto fit = [](const Coefficients& list) {
    return std::all_of(list.begin(), list.end(),
                       [](double c) { return fits(c, DType::kF32); });
  };
  return a.divisor == Divisor::kSum || !fit(sums.weight_sq) ||
         !fit(sums.derivative_sq);
}

// u of p(s) = c_0 + s u(s); nothing if it is zero.
std::optional<Activation> rest_of(const Coefficients& p) {
  Activation u;
  u.kind = ActivationKind::kPolynomial;
  u.divisor = Divisor::kOne;
  bool any = false;
  for (std::size_t i = 1; i < p.size(); ++i) {
    if (p[i] == 0) continue;
    any = true;
    u.degree = static_cast<int>(i) - 1;
    u.coefficient[i - 1] = p[i];
  }
  if (!any) return std::nullopt;
  return u;
}

bool too_high(const Coefficients& p) {
  return p.size() > static_cast<std::size_t>(kMaxDegree) + 2;
}

// The norms of one call, by way of sums over rows.
class LinearNorms {
 public:
  LinearNorms(const Problem& p, const AttentionInputs& in,
              const AttentionConfig& config, Parallel& parallel)
      : p_(p), in_(in), config_(config), parallel_(parallel) {
    in_.v = in_.k;
    config_.path = Path::kLinear;
    if (needs_f64(config.activation)) config_.compute = DType::kF64;
    rows_.resize(static_cast<std::size_t>(in_.q.size[0] * in_.q.size[1] *
                                          in_.q.size[2]));
    o_.resize(rows_.size() * static_cast<std::size_t>(p.d) *
              size_of(config_.compute));
  }

  void run(std::span<AttentionNormsSq> norms) {
    const RowPolynomials sums = polynomials_of(config_.activation);
    counts_ = count_rows(2);
    const std::vector<double> weight = row_sums(sums.weight, 1);
    const std::vector<double> weight_sq = row_sums(sums.weight_sq, 2);
    const std::vector<double> slope_sq = row_sums(sums.derivative_sq, 2);
    const std::vector<double> mixed = row_sums(sums.derivative_sq_weight, 3);
    for (std::int64_t b = 0; b < p_.batch; ++b) {
      for (std::int64_t h = 0; h < p_.heads; ++h) {
        AttentionNormsSq total;
        for (std::int64_t i = 0; i < p_.sequence(b).n; ++i) {
          const auto r = static_cast<std::size_t>(p_.row_index(b, h, i));
          add(total, counts_[r], sums.weight.empty() ? 0 : weight[r],
              weight_sq[r], slope_sq[r], mixed.empty() ? 0 : mixed[r]);
        }
        norms[static_cast<std::size_t>(b * p_.heads + h)] = total;
      }
    }
  }

 private:
  // Sums of fade^power over the keys of each row, by way of their divisor, for
  // which fade^2 is added up.
  std::vector<double> count_rows(int power) {
    AttentionConfig config = config_;
    config.activation = Activation::parse("1/N");
    fade(0.5 * power);
    forward(config);
    std::vector<double> counts(rows_.size());
    for (std::size_t r = 0; r < rows_.size(); ++r)
      counts[r] = rows_[r].scale == 0 ? 0 : 1 / rows_[r].scale;
    if (!p_.decays())
      for (double& count : counts) count = std::round(count);
    return counts;
  }

  // Lets the weights fade with so many times the logarithms.
  void fade(double times) {
    if (!p_.decays()) return;
    const ConstTensor& from = *p_.in.log_decay;
    const Extents& size = from.size;
    log_decay_.clear();
    for (std::int64_t b = 0; b < size[0]; ++b)
      for (std::int64_t g = 0; g < size[1]; ++g)
        for (std::int64_t j = 0; j < size[2]; ++j)
          log_decay_.push_back(times *
                               load_element(from.data, from.dtype,
                                            row_offset(from.stride, b, g, j)));
    in_.log_decay = view(log_decay_.data(), size);
  }

  void forward(const AttentionConfig& config) {
    const Extents size = {in_.q.size[0], in_.q.size[1], in_.q.size[2], p_.d};
    const AttentionResults results = {
        view(o_.data(), config.compute, size), rows_, {}};
    const Workspace room(
        attention_forward_workspace(in_, config, parallel_.workers()));
    attention_forward(in_, config, results, room.span(), parallel_);
  }

  // Sums of fade_ij^power p(s_ij) over the keys j that row i sees.
  std::vector<double> row_sums(const Coefficients& p, int power) {
    if (p.empty()) return {};
    std::vector<double> sums =
        p_.decays() && power != 2 ? count_rows(power) : counts_;
    for (double& sum : sums) sum *= p[0];
    const std::optional<Activation> rest = rest_of(p);
    if (!rest) return sums;
    AttentionConfig config = config_;
    config.activation = *rest;
    fade(power);
    forward(config);
    for (std::int64_t b = 0; b < in_.q.size[0]; ++b)
      for (std::int64_t h = 0; h < p_.heads; ++h)
        for (std::int64_t i = 0; i < in_.q.size[2]; ++i) add_dot(sums, b, h, i);
    return sums;
  }

  void add_dot(std::vector<double>& sums, std::int64_t b, std::int64_t h,
               std::int64_t i) const {
    const std::int64_t row = (b * p_.heads + h) * in_.q.size[2] + i;
    const std::int64_t at = row_offset(in_.q.stride, b, h, i);
    double dot = 0;
    for (std::int64_t c = 0; c < p_.d; ++c)
      dot += load_element(in_.q.data, in_.q.dtype, at + c) *
             load_element(o_.data(), config_.compute, row * p_.d + c);
    sums[static_cast<std::size_t>(row)] += p_.scale * dot;
  }

  // As row_end.h adds a row.
  void add(AttentionNormsSq& total, double n, double weight, double weight_sq,
           double slope_sq, double mixed) const {
    const Activation& a = config_.activation;
    if (n == 0) return;
    double scale = a.row_scale(n);
    if (a.divisor == Divisor::kSum) scale = weight == 0 ? 0 : 1 / weight;
    const double c2 = scale * scale;
    const double row = c2 * weight_sq;
    total.weight += row;
    total.jacobian += a.divisor == Divisor::kSum
                          ? (1 + row) * c2 * slope_sq - 2 * c2 * scale * mixed
                          : c2 * slope_sq;
  }

  const Problem& p_;
  AttentionInputs in_;
  AttentionConfig config_;
  Parallel& parallel_;
  std::vector<RowState> rows_;
  std::vector<double> counts_;     // n
  std::vector<double> log_decay_;  // as log_decay, times a power
  std::vector<std::byte> o_;
};

// Why the norms have no linear time; empty if they have.
std::string norms_obstacle(const Problem& p) {
  const std::string obstacle = linear_obstacle(p);
  if (!obstacle.empty()) return obstacle;
  const RowPolynomials sums = polynomials_of(p.activation);
  if (too_high(sums.weight_sq) || too_high(sums.derivative_sq_weight))
    return "the squares of " + p.activation.to_string() +
           " have too high a degree";
  return {};
}

// Seconds of both ways.
bool linear_is_faster(const Problem& p) {
  const PathCosts costs = path_costs();
  const RowPolynomials sums = polynomials_of(p.activation);
  double linear = 0;
  for (const Coefficients* c :
       {&sums.weight, &sums.weight_sq, &sums.derivative_sq,
        &sums.derivative_sq_weight}) {
    const std::optional<Activation> rest = rest_of(*c);
    if (!rest) continue;
    Problem sub = p;
    sub.activation = *rest;
    sub.e = p.d;
    if (!linear_obstacle(sub).empty()) return false;
    linear += predict_linear(sub, Direction::kForward, costs.forward);
  }
  if (needs_f64(p.activation)) linear *= 2;
  Problem dense = p;
  dense.e = 1;
  return linear < predict_dense(dense, costs.forward);
}

bool goes_linear(const Problem& p) {
  if (p.decays()) return true;
  const Path path = p.path == Path::kAuto ? path_of_environment() : p.path;
  return path == Path::kAuto ? linear_is_faster(p) : path == Path::kLinear;
}

void dense_norms(const Problem& p, AttentionInputs in, AttentionConfig config,
                 std::span<AttentionNormsSq> norms, Parallel& parallel) {
  // Values of one column are enough: the first of the keys.
  in.v = in.k;
  in.v.size[3] = std::min<std::int64_t>(p.d, 1);
  if (!p.decays()) config.path = Path::kDense;
  const Extents size = {in.q.size[0], in.q.size[1], in.q.size[2], in.v.size[3]};
  std::vector<std::byte> o(static_cast<std::size_t>(element_count(size)) *
                           size_of(config.compute));
  std::vector<AttentionStats> stats(norms.size());
  const AttentionResults results = {
      view(o.data(), config.compute, size), {}, stats};
  if (p.decays()) {
    reference_forward(in, config, results);
  } else {
    const Workspace room(
        attention_forward_workspace(in, config, parallel.workers()));
    attention_forward(in, config, results, room.span(), parallel);
  }
  for (std::size_t i = 0; i < norms.size(); ++i)
    norms[i] = {stats[i].weight_sq, stats[i].jacobian_sq};
}

}  // namespace

Path attention_norms(const AttentionInputs& inputs,
                     const AttentionConfig& config,
                     std::span<AttentionNormsSq> norms, Parallel& parallel) {
  AttentionInputs in = inputs;
  in.v = in.k;
  const Problem p = check_problem(kNorms, in, config);
  check_decay_values(kNorms, p);
  if (std::ssize(norms) != p.batch * p.heads)
    throw std::invalid_argument("[" + std::string(kNorms) + "] " +
                                std::to_string(norms.size()) + " norms for " +
                                std::to_string(p.batch) + " x " +
                                std::to_string(p.heads) + " heads");
  const std::string obstacle = norms_obstacle(p);
  if (config.path == Path::kLinear && !obstacle.empty())
    throw std::invalid_argument("[" + std::string(kNorms) +
                                "] no linear path: " + obstacle);
  if (obstacle.empty() && goes_linear(p)) {
    try {
      LinearNorms(p, in, config, parallel).run(norms);
      return Path::kLinear;
    } catch (const std::overflow_error&) {
      if (config.path == Path::kLinear) throw;
    }
  }
  dense_norms(p, in, config, norms, parallel);
  return Path::kDense;
}

}  // namespace polyattn
