// Options by name.
#pragma once

#include <c10/util/Exception.h>

#include <string>
#include <utility>
#include <vector>

namespace polyattn::models {

template <typename Options>
using NamedOptions = std::vector<std::pair<std::string, Options>>;

template <typename Options>
std::vector<std::string> names_of(const NamedOptions<Options>& list) {
  std::vector<std::string> names;
  for (const auto& [name, options] : list) names.push_back(name);
  return names;
}

// Throws c10::Error: [op] name "x" is none of a, b, c.
template <typename Options>
Options find_options(const char* op, const NamedOptions<Options>& list,
                     const std::string& wanted) {
  std::string known;
  for (const auto& [name, options] : list) {
    if (name == wanted) return options;
    known += (known.empty() ? "" : ", ") + name;
  }
  TORCH_CHECK(false, '[', op, "] name \"", wanted, "\" is none of ", known);
}

}  // namespace polyattn::models
