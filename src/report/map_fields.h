// Members of RUN/maps.json, checked. Every function throws base::JsonError.
#pragma once

#include <cstdint>
#include <string>

#include "base/json_text.h"

namespace polyattn::report {

const base::Json& member(const base::Json& object, const char* key);

// From `least` to 4096, the longest side.
std::int64_t count_at(const base::Json& object, const char* key,
                      std::int64_t least);

std::string string_at(const base::Json& object, const char* key);

const base::Json& filled_list(const base::Json& object, const char* key);

// Of exactly `bytes` bytes.
std::string base64_at(const base::Json& object, const char* key,
                      std::int64_t bytes);

}  // namespace polyattn::report
