#include "theory/trained.h"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>

#include "base/text_table.h"
#include "theory/expectation.h"
#include "theory/softmax_bound.h"

namespace polyattn::theory {
namespace {

// What measured norms may be above a bound by rounding, in any precision that
// models are trained in.
constexpr double kTrainedRounding = 1e-3;

double keys_of_row(const MeasuredLayer& layer, std::int64_t row) {
  return static_cast<double>(layer.causal ? row + 1 : layer.tokens);
}

// Largest |w| and |w'| of an element-wise weight for scores up to `most`.
struct LargestWeight {
  double value = 0, derivative = 0;
};

LargestWeight largest_weight(const Activation& a, double most) {
  LargestWeight largest;
  switch (a.kind) {
    case ActivationKind::kPolynomial:
      for (int k = a.degree; k >= 0; --k) {
        const double c = std::abs(a.coefficient[static_cast<std::size_t>(k)]);
        largest.value += c * std::pow(most, k);
        if (k > 0) largest.derivative += k * c * std::pow(most, k - 1);
      }
      break;
    case ActivationKind::kRelu:
      largest.value = std::abs(a.gain) * std::pow(most, a.degree);
      largest.derivative =
          std::abs(a.gain) * a.degree * std::pow(most, a.degree - 1);
      break;
    case ActivationKind::kSigmoid:
      largest.value = std::abs(a.gain);
      largest.derivative = std::abs(a.gain) / 4;
      break;
    case ActivationKind::kSoftmax:
      break;
  }
  return largest;
}

// ||A||_F <= max |w| sqrt(sum_i n_i / divisor_i^2), and so for w'.
void bound_elements(TrainedRow& row, const Activation& a) {
  double sum = 0;
  for (std::int64_t i = 0; i < row.layer.tokens; ++i) {
    const double keys = keys_of_row(row.layer, i);
    sum += keys * a.row_scale(keys) * a.row_scale(keys);
  }
  const LargestWeight largest = largest_weight(a, row.layer.max_abs_score);
  row.weight_bound = largest.value * std::sqrt(sum);
  row.jacobian_bound = largest.derivative * std::sqrt(sum);
}

void add_bounds(TrainedRow& row, const Activation& a) {
  if (a.kind == ActivationKind::kSoftmax) {
    row.weight_bound = softmax_norm_bound(row.layer.tokens);
    row.jacobian_bound = softmax_jacobian_bound(row.layer.tokens);
  } else if (a.divisor == Divisor::kSum) {
    // The absolute weights of a row add up to 1.
    row.weight_bound = softmax_norm_bound(row.layer.tokens);
  } else {
    bound_elements(row, a);
  }
  const auto within = [](double norm, const std::optional<double>& bound) {
    return !bound || norm <= *bound * (1 + kTrainedRounding);
  };
  row.within_bounds = within(row.layer.weight_norm, row.weight_bound) &&
                      within(row.layer.jacobian_norm, row.jacobian_bound);
}

void check_layer(const MeasuredLayer& layer) {
  const auto require = [&](bool ok, const std::string& what) {
    if (ok) return;
    throw std::invalid_argument(
        fmt::format("[theory] {}: {}", layer.name, what));
  };
  require(layer.tokens >= 1, fmt::format("tokens {} < 1", layer.tokens));
  require(layer.width >= 1, fmt::format("width {} < 1", layer.width));
  for (const double value :
       {layer.weight_norm, layer.jacobian_norm, layer.max_abs_score}) {
    require(value >= 0, fmt::format("{} is no norm and no score", value));
  }
}

std::string trained_number(const std::optional<double>& value) {
  return value ? fmt::format("{:.4g}", *value) : "";
}

std::string trained_ratio(double norm, const std::optional<double>& expected) {
  return expected ? fmt::format("{:.3g}", norm / *expected) : "";
}

}  // namespace

std::vector<TrainedRow> trained_rows(const std::vector<MeasuredLayer>& layers) {
  std::vector<TrainedRow> rows;
  for (const MeasuredLayer& layer : layers) {
    check_layer(layer);
    const Activation a = Activation::parse(layer.activation);
    TrainedRow row{.layer = layer};
    add_bounds(row, a);
    if (a.kind == ActivationKind::kPolynomial && a.divisor != Divisor::kSum) {
      const Setting setting{
          .tokens = layer.tokens, .width = layer.width, .causal = layer.causal};
      row.weight_expected = std::sqrt(expected_weight_sq(a, setting));
      row.jacobian_expected = std::sqrt(expected_jacobian_sq(a, setting));
    }
    rows.push_back(row);
  }
  return rows;
}

std::string trained_table(const std::vector<TrainedRow>& rows) {
  base::TextTable table({{"layer", base::Align::kLeft},
                         {"activation", base::Align::kLeft},
                         {"N"},
                         {"||A||"},
                         {"bound"},
                         {"/Gauss"},
                         {"||dA/dS||"},
                         {"bound"},
                         {"/Gauss"},
                         {"max |s|"},
                         {"within", base::Align::kLeft}});
  for (const TrainedRow& row : rows) {
    const MeasuredLayer& layer = row.layer;
    table.add_row({layer.name, layer.activation, std::to_string(layer.tokens),
                   trained_number(layer.weight_norm),
                   trained_number(row.weight_bound),
                   trained_ratio(layer.weight_norm, row.weight_expected),
                   trained_number(layer.jacobian_norm),
                   trained_number(row.jacobian_bound),
                   trained_ratio(layer.jacobian_norm, row.jacobian_expected),
                   trained_number(layer.max_abs_score),
                   row.within_bounds ? "yes" : "NO"});
  }
  return table.to_string();
}

}  // namespace polyattn::theory
