// Output that is complete or an error.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace polyattn::base {

// To standard output. Throws std::runtime_error if it cannot be written.
void print_text(std::string_view text);

// On several lines. JSON is UTF-8, but a path in it may be anything: other
// bytes become U+FFFD.
std::string json_text(const nlohmann::ordered_json& json);
void print_json(const nlohmann::ordered_json& json);

}  // namespace polyattn::base
