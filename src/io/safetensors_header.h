// The JSON header of a safetensors file: what it says, not yet whether the data
// agrees with it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "polyattn/io/safetensors.h"

namespace polyattn::io {

inline constexpr std::string_view kMetadataKey = "__metadata__";

struct HeaderEntry {
  std::string name;
  TensorType type = TensorType::kBool;
  std::vector<std::int64_t> shape{};         // not negative
  std::vector<std::int64_t> data_offsets{};  // two, not negative
};

struct Header {
  std::vector<HeaderEntry> entries;  // in the order of the text
  Metadata metadata;
};

// Throws SafetensorsError if the text is not a header: a JSON object of the
// form that safetensors.h shows and spaces behind it, without a key twice.
Header parse_header(std::string_view text, std::string_view source);

}  // namespace polyattn::io
