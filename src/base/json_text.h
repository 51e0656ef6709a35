// JSON that comes from files, and goes there.
#pragma once

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

namespace polyattn::base {

using Json = nlohmann::ordered_json;

// Text that is no JSON, or JSON that is not what it should be.
class JsonError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// In linear time. Throws JsonError, of one line, without the name of a file;
// also if values are nested more than 16 deep, for walking through them takes
// stack, or an object has more than 1000 members.
Json parse_json(std::string_view text);

// A number as records have it: "nan", "inf" or "-inf" for what is not finite.
Json number(double value);
// The inverse. Throws JsonError.
double number_of(const Json& json);

// In one line. Bytes that are no UTF-8 become U+FFFD.
std::string printed(const Json& json);

// A line of metrics.jsonl: numbers that are not finite become their strings.
std::string json_line(Json json);

}  // namespace polyattn::base
