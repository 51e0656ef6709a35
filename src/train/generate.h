// Text from a language model of a run, token by token.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "polyattn/decode.h"

namespace polyattn::train {

struct GenerateOptions {
  std::filesystem::path folder;
  bool best = false;
  int threads = 1;
  std::string prompt;        // empty: a line break
  std::int64_t bytes = 400;  // until there are as many
  double temperature = 0.8;  // 0: always the likeliest
  std::int64_t top_k = 0;    // 0: all
  double top_p = 1;
  std::uint64_t seed = 1;
  // Ends behind the token that completes this text; empty: never.
  std::string stop;
  // What stands for the text that was read (polyattn/decode.h).
  DecodeMode mode = DecodeMode::kAuto;
  // The most that the model looks back on: beyond it, it begins again with the
  // latter half. 0: on everything. Default: everything where sums over features
  // stand for it, else the context of the training.
  std::optional<std::int64_t> window = {};
};

struct GenerateResult {
  std::string text;         // without the prompt
  std::int64_t tokens = 0;  // of it
  double seconds = 0;
  // Tokens a second, of each tenth of what was written.
  std::vector<double> speeds = {};
  std::int64_t window = 0;       // as it was used; 0: everything
  std::int64_t context = 0;      // of the training
  std::int64_t state_bytes = 0;  // of what stood for the text at the end
  bool sums = false;             // whether it held sums then
  std::int64_t step = 0;         // of the weights
};

// `show` gets each piece as it comes; it returns false to end. Throws
// std::invalid_argument if the run is no language model or an option makes no
// sense: a window beyond the context of learned positions, sums for an
// activation that has none. Throws std::runtime_error if the weights make
// logits that are not finite.
GenerateResult generate(const GenerateOptions& options,
                        const std::function<bool(std::string_view)>& show);

}  // namespace polyattn::train
