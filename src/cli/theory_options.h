// What --degrees and --lengths of `polyattn theory` may say.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace polyattn::cli {

// "1,2,3" or "1..4". Ascending, each once. Throw UsageError, which names the
// flag, the value and the range.
std::vector<int> parse_degrees(const std::string& text);

// "64,128,197", "16..4096" (the powers of two from one to the other), or both.
std::vector<std::int64_t> parse_lengths(const std::string& text);

}  // namespace polyattn::cli
