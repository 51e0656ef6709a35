#include "train/run/figure_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

namespace polyattn::run {
namespace {

constexpr std::size_t kMaxNamed = 3;

// "+0.3", and "0.0" for what is rounded to it.
std::string with_sign(double value, int decimals) {
  const double scale = std::pow(10.0, decimals);
  const double rounded = std::round(value * scale) / scale;
  if (rounded == 0) return fmt::format("{:.{}f}", 0.0, decimals);
  return fmt::format("{:+.{}f}", rounded, decimals);
}

// Of those that are not pooled though others are.
std::string exceptions_text(const Comparison& comparison) {
  std::vector<std::string> names;
  for (const ComparisonRow& row : comparison.rows) {
    if (row.difference.half_width && !row.difference.pooled) {
      names.push_back(row.activation);
    }
  }
  if (names.empty()) return "";
  if (names.size() > kMaxNamed) {
    return fmt::format(", {} by their own", names.size());
  }
  return fmt::format(", {} by {} own", fmt::join(names, " and "),
                     names.size() == 1 ? "its" : "their");
}

}  // namespace

FigureStyle style_of(Figure figure) {
  switch (figure) {
    case Figure::kAccuracy:
      return {100, 1, "", " %", " points", false, 0.005};
    case Figure::kBitsPerByte:
      return {1, 3, "", " bits per byte", "", true, 0.01};
    case Figure::kRelativeL2:
      return {1, 4, "a relative L2 error of ", "", "", true, 0.01};
    default:
      return {1, 3, "a loss of ", "", "", true, 0.01};
  }
}

int decimals_for(const Difference& difference, const FigureStyle& style) {
  const double unit = std::pow(10.0, -style.decimals) / 2;
  const bool small =
      std::abs(difference.mean) * style.factor < unit ||
      (difference.half_width && *difference.half_width * style.factor < unit);
  return style.decimals + (small ? 1 : 0);
}

std::string difference_text(const Difference& difference,
                            const FigureStyle& style) {
  const int decimals = decimals_for(difference, style);
  const std::string sign = with_sign(difference.mean * style.factor, decimals);
  const char* direction = sign[0] == '-'   ? "less"
                          : sign[0] == '+' ? "more"
                                           : "apart";
  return fmt::format("{:.{}f}{} {}", std::abs(difference.mean) * style.factor,
                     decimals, style.difference_unit, direction);
}

std::string signed_text(const Difference& difference,
                        const FigureStyle& style) {
  return with_sign(difference.mean * style.factor,
                   decimals_for(difference, style));
}

std::string interval_text(const Difference& difference,
                          const FigureStyle& style) {
  const int decimals = decimals_for(difference, style);
  const double half = difference.half_width.value();
  return fmt::format(
      "{} to {}", with_sign((difference.mean - half) * style.factor, decimals),
      with_sign((difference.mean + half) * style.factor, decimals));
}

std::string interval_note(const Comparison& comparison) {
  const IntervalBasis& basis = comparison.basis;
  if (basis.intervals == 0) return "";
  if (basis.intervals == 1) return "95 % interval";
  if (basis.pooled == 0) {
    return "95 % intervals, all at once, each by its own seed variance";
  }
  return fmt::format(
      "95 % intervals, all at once, seed variance pooled over {} "
      "activations{}",
      basis.pooled, exceptions_text(comparison));
}

}  // namespace polyattn::run
