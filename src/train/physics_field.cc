#include "train/physics_field.h"

#include <fmt/format.h>
#include <torch/autograd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "physics/evaluate.h"
#include "train/quantity.h"
#include "train/run/config.h"

namespace polyattn::train {
namespace {

using physics::Condition;
using physics::Expression;
using physics::Symbol;

// Points a side of the grid that an exact solution is checked on.
constexpr std::int64_t kCheckPoints = 13;
// Rounding of f64 stays far below, a wrong solution far above.
constexpr double kCheckTolerance = 1e-7;

std::int64_t index_of(const physics::Names& names, const std::string& name) {
  const auto& all = names.coordinates;
  return std::find(all.begin(), all.end(), name) - all.begin();
}

std::vector<Quantity> values_of(
    const Expression& expression,
    const std::function<torch::Tensor(const Symbol&)>& value) {
  std::vector<Quantity> values;
  for (const Symbol& symbol : expression.symbols)
    values.emplace_back(value(symbol));
  return values;
}

double largest(const torch::Tensor& values) {
  return values.abs().max().item<double>();
}

}  // namespace

torch::Tensor grid_points(const physics::Problem& problem,
                          std::int64_t points) {
  std::vector<torch::Tensor> lines;
  for (const physics::Interval& interval : problem.domain) {
    lines.push_back(
        torch::linspace(interval.low, interval.high, points, torch::kDouble));
  }
  return torch::cartesian_prod(lines);
}

PhysicsField::PhysicsField(const physics::Problem& problem, torch::Tensor rows,
                           torch::Tensor unknown)
    : problem_(problem), rows_(std::move(rows)) {
  side_ = std::llround(std::sqrt(static_cast<double>(rows_.size(0))));
  derivatives_[""] = unknown.squeeze(-1);
}

// The gradient of the sum: a row is differentiated as it stands among its
// neighbours.
const torch::Tensor& PhysicsField::derivative(const std::string& by) {
  const auto found = derivatives_.find(by);
  if (found != derivatives_.end()) return found->second;
  const std::string before = by.substr(0, by.size() - 1);
  const torch::Tensor& lower = derivative(before);
  if (!gradients_.contains(before)) {
    torch::Tensor gradient;
    if (lower.requires_grad()) {
      gradient =
          torch::autograd::grad({lower}, {rows_}, {torch::ones_like(lower)},
                                /*retain_graph=*/true,
                                /*create_graph=*/true,
                                /*allow_unused=*/true)[0];
    }
    gradients_[before] =
        gradient.defined() ? gradient : torch::zeros_like(rows_);
  }
  return derivatives_[by] = gradients_[before].select(
             -1, index_of(problem_.names, by.substr(by.size() - 1)));
}

torch::Tensor PhysicsField::value(const Symbol& symbol) {
  const torch::Tensor values =
      symbol.is_unknown
          ? derivative(symbol.coordinates)
          : rows_.select(-1, index_of(problem_.names, symbol.coordinates));
  return values.view({side_, side_, values.size(-1)});
}

torch::Tensor PhysicsField::residual(const Expression& equation) {
  return physics::evaluate<Quantity>(
             equation,
             values_of(equation,
                       [&](const Symbol& symbol) { return value(symbol); }))
      .tensor();
}

// The published code counts the initial values of the first rows alone, which
// are the points themselves, and all rows of everything else.
torch::Tensor PhysicsField::residual(const Condition& condition) {
  const auto edge = [&](const torch::Tensor& values, bool high) {
    return values.select(static_cast<std::int64_t>(condition.coordinate),
                         high ? side_ - 1 : 0);
  };
  if (condition.is_periodic()) {
    const torch::Tensor u = value({.is_unknown = true});
    return edge(u, true) - edge(u, false);
  }
  const auto& symbols = condition.equation->symbols;
  const bool plain =
      std::none_of(symbols.begin(), symbols.end(), [](const Symbol& symbol) {
        return symbol.is_unknown && !symbol.coordinates.empty();
      });
  const bool first = plain && condition.term == "initial";
  return physics::evaluate<Quantity>(
             *condition.equation,
             values_of(*condition.equation,
                       [&](const Symbol& symbol) {
                         const auto rows = edge(value(symbol), condition.high);
                         return first ? rows.select(-1, 0) : rows;
                       }))
      .tensor();
}

double PhysicsField::largest_symbol(const Expression& expression) {
  double most = 0;
  for (const Symbol& symbol : expression.symbols)
    most = std::max(most, largest(value(symbol)));
  return most;
}

torch::Tensor value_at(const Expression& expression,
                       const physics::Names& names,
                       const torch::Tensor& points) {
  return physics::evaluate<Quantity>(
             expression, values_of(expression,
                                   [&](const Symbol& symbol) {
                                     return points.select(
                                         -1,
                                         index_of(names, symbol.coordinates));
                                   }))
      .as(points.select(-1, 0));
}

std::map<std::string, torch::Tensor> physics_terms(
    const physics::Problem& problem, PhysicsField& field) {
  std::map<std::string, torch::Tensor> terms;
  terms["residual"] = field.residual(problem.equation).square().mean();
  for (const Condition& condition : problem.conditions) {
    const auto mean = field.residual(condition).square().mean();
    torch::Tensor& term = terms[condition.term];
    term = term.defined() ? term + mean : mean;
  }
  return terms;
}

void check_exact_solution(const physics::Problem& problem) {
  const auto rows =
      grid_points(problem, kCheckPoints).unsqueeze(1).requires_grad_();
  PhysicsField field(
      problem, rows,
      value_at(problem.exact, problem.names, rows.squeeze(1)).view({-1, 1, 1}));
  const auto check = [&](const torch::Tensor& residual, double scale,
                         const std::string& what) {
    const double error = largest(residual);
    if (error <= kCheckTolerance * std::max(scale, 1.0)) return;
    throw run::ConfigError(
        fmt::format("[problem] {}: the exact solution \"{}\" does not fit {}: "
                    "it is off by up to {:.3g}",
                    problem.title, problem.exact.text, what, error));
  };
  check(field.residual(problem.equation),
        field.largest_symbol(problem.equation),
        fmt::format("the equation \"{}\"", problem.equation.text));
  for (const Condition& condition : problem.conditions) {
    if (condition.is_periodic()) {
      check(field.residual(condition), 1,
            fmt::format("a condition: it is not periodic in {}",
                        problem.names.coordinates[condition.coordinate]));
    } else {
      check(field.residual(condition),
            field.largest_symbol(*condition.equation),
            fmt::format("the condition \"{}\"", condition.equation->text));
    }
  }
}

}  // namespace polyattn::train
