// JSON that comes from files, and goes there.
#pragma once

#include <string>
#include <string_view>

#include "run/records.h"

namespace polyattn::run {

// Throws RecordError, of one line, without the name of a file; also if values
// are nested so deep that walking through them would be a danger.
Json parse_json(std::string_view text);

// In one line. Bytes that are no UTF-8 become U+FFFD.
std::string printed(const Json& json);

// A line of metrics.jsonl: numbers that are not finite become their strings.
std::string json_line(Json json);

}  // namespace polyattn::run
