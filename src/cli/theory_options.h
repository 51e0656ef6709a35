// What the options of `polyattn theory` may say.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "theory/claims.h"

namespace polyattn::cli {

// "1,2,3" or "1..4". Ascending, each once. Throw UsageError, which names the
// flag, the value and the range.
std::vector<int> parse_degrees(const std::string& text);

// "64,128,197", "16..4096" (the powers of two from one to the other), or both.
std::vector<std::int64_t> parse_lengths(const std::string& text);

template <typename T>
CLI::Validator theory_range(T low, T high) {
  return CLI::Range(low, high).description("");
}

inline CLI::Validator samples_range() {
  return theory_range(theory::kLeastSamples, theory::kMostSamples);
}

inline CLI::Validator width_range() {
  return theory_range(std::int64_t{1}, theory::kMostWidth);
}

}  // namespace polyattn::cli
