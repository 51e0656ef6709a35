// The costs in use, and their text.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include "polyattn/plan.h"
#include "polyattn/target.h"

namespace polyattn {
namespace {

struct TargetCosts {
  std::string_view target;
  PathCosts costs;
};

// Of a virtual machine (Intel Xeon with AVX-512, two cores that had other
// work): of each number the median of 41 calls of measure_path_costs(), in a
// program that goes through supported_targets() and ran under `chrt -f 50`. One
// such call is `POLYATTN_TARGET=avx2 polyattn bench calibrate`. Those of sse4
// and scalar are rough: their quartiles lie up to a factor of 2 apart, and more
// where a number is small. Any other target is taken as the first.
constexpr std::array<TargetCosts, 4> kLibraryCosts = {{
    {"avx2",
     {{0.102, 0.115, 0.0219, 923, 0.21, 0.135, 0.0217, 15.8},
      {0.102, 0.403, 0.0586, 1940, 0.76, 0.424, 0.0527, 35.5}}},
    {"avx3",
     {{0.128, 0.112, 0.011, 1060, 0.198, 0.18, 0.0104, 18.6},
      {0.419, 0.471, 0.0274, 2340, 0.605, 0.503, 0.026, 39}}},
    {"sse4",
     {{0.219, 0.235, 0.0704, 928, 0.31, 0.17, 0.0717, 11.7},
      {0.0706, 0.602, 0.183, 2180, 1.05, 0.573, 0.181, 48}}},
    {"scalar",
     {{1.25, 1.8, 0.194, 1580, 0.888, 0.404, 0.233, 19.6},
      {0, 2.39, 0.605, 2440, 2.85, 2.24, 0.585, 131}}},
}};

// avx3 is also avx3_dl, avx3_zen4 and what else may come.
const PathCosts& library_costs(std::string_view target) {
  for (const TargetCosts& row : kLibraryCosts)
    if (target.starts_with(row.target)) return row.costs;
  return kLibraryCosts.front().costs;
}

template <typename Cost>
auto numbers_of(Cost& cost) {
  return std::array{&cost.row,           &cost.pair,  &cost.pair_width,
                    &cost.head,          &cost.token, &cost.feature,
                    &cost.feature_width, &cost.step};
}

bool is_cost(double x) { return std::isfinite(x) && x >= 0; }

void append(std::string& text, const PathCost& cost) {
  for (const double* number : numbers_of(cost)) {
    std::array<char, 32> digits{};
    const auto end =
        std::to_chars(digits.data(), digits.data() + digits.size(), *number);
    text.append(" ").append(digits.data(), end.ptr);
  }
}

// Takes the next word off the text.
std::string_view take_word(std::string_view& text) {
  const std::size_t end = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

bool take_cost(std::string_view& text, std::string_view name, PathCost& cost) {
  if (take_word(text) != name) return false;
  for (double* number : numbers_of(cost)) {
    const std::string_view word = take_word(text);
    const auto [end, error] =
        std::from_chars(word.data(), word.data() + word.size(), *number);
    if (error != std::errc() || end != word.data() + word.size() ||
        !is_cost(*number))
      return false;
  }
  return true;
}

// Of each target for which some were set.
struct Installed {
  std::mutex mutex;
  std::map<std::string, PathCosts> by_target;
};

Installed& installed() {
  static Installed costs;
  return costs;
}

}  // namespace

PathCosts path_costs() {
  const std::string target = target_name();
  Installed& costs = installed();
  const std::lock_guard lock(costs.mutex);
  const auto found = costs.by_target.find(target);
  return found != costs.by_target.end() ? found->second : library_costs(target);
}

void set_path_costs(const std::optional<PathCosts>& costs) {
  const std::string target = target_name();
  if (costs) {
    for (const PathCost* cost : {&costs->forward, &costs->backward})
      for (const double* number : numbers_of(*cost))
        if (!is_cost(*number))
          throw std::invalid_argument("[plan] a cost of " +
                                      std::to_string(*number) +
                                      " ns is not finite, or below 0");
  }
  Installed& all = installed();
  const std::lock_guard lock(all.mutex);
  if (costs) {
    all.by_target[target] = *costs;
  } else {
    all.by_target.erase(target);
  }
}

std::string to_string(const PathCosts& costs) {
  std::string text = "forward";
  append(text, costs.forward);
  text += " backward";
  append(text, costs.backward);
  return text;
}

PathCosts parse_path_costs(std::string_view text) {
  PathCosts costs;
  std::string_view rest = text;
  if (!take_cost(rest, "forward", costs.forward) ||
      !take_cost(rest, "backward", costs.backward) || !rest.empty())
    throw std::invalid_argument("[plan] \"" + std::string(text.substr(0, 400)) +
                                "\" are no path costs");
  return costs;
}

}  // namespace polyattn
