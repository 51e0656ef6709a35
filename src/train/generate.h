// Text from a language model of a run, byte by byte.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace polyattn::train {

struct GenerateOptions {
  std::filesystem::path folder;
  bool best = false;
  int threads = 1;
  std::string prompt;  // empty: a line break
  std::int64_t bytes = 400;
  double temperature = 0.8;  // 0: always the likeliest
  std::int64_t top_k = 0;    // 0: all
  double top_p = 1;
  std::uint64_t seed = 1;
  std::string stop;  // ends behind this text; empty: never
};

struct GenerateResult {
  std::string text;  // without the prompt
  double seconds = 0;
  std::int64_t step = 0;  // of the weights
};

// `show` gets each piece as it comes; it returns false to end. The model sees
// at most the context that it was trained with: beyond that it begins anew with
// the latter half. Throws std::invalid_argument if the run is no language model
// or an option makes no sense.
GenerateResult generate(const GenerateOptions& options,
                        const std::function<bool(std::string_view)>& show);

}  // namespace polyattn::train
