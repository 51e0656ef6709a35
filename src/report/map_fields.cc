#include "report/map_fields.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/message.h"

namespace polyattn::report {

using base::Json;
using base::JsonError;

namespace {

constexpr std::int64_t kMaxSide = 4096;

bool is_base64_digit(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
         (c >= '0' && c <= '9') || c == '+' || c == '/';
}

}  // namespace

const Json& member(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) {
    throw JsonError(fmt::format("\"{}\" is missing", key));
  }
  return *found;
}

std::int64_t count_at(const Json& object, const char* key, std::int64_t least) {
  const Json& json = member(object, key);
  const bool fits =
      json.is_number_unsigned() &&
      json.get<std::uint64_t>() <= static_cast<std::uint64_t>(kMaxSide);
  if (!fits || json.get<std::int64_t>() < least) {
    throw JsonError(fmt::format("\"{}\" is {}, must be from {} to {}", key,
                                base::shortened(base::printed(json)), least,
                                kMaxSide));
  }
  return json.get<std::int64_t>();
}

std::string string_at(const Json& object, const char* key) {
  const Json& json = member(object, key);
  if (!json.is_string()) {
    throw JsonError(fmt::format("\"{}\" is no string", key));
  }
  return json.get<std::string>();
}

const Json& filled_list(const Json& object, const char* key) {
  const Json& json = member(object, key);
  if (!json.is_array() || json.empty()) {
    throw JsonError(fmt::format("\"{}\" is no list, or empty", key));
  }
  return json;
}

std::string base64_at(const Json& object, const char* key, std::int64_t bytes) {
  std::string text = string_at(object, key);
  const auto length = static_cast<std::size_t>((bytes + 2) / 3 * 4);
  const auto padding = static_cast<std::size_t>((3 - bytes % 3) % 3);
  if (text.size() != length) {
    throw JsonError(
        fmt::format("\"{}\" has {} characters, {} bytes of base64 have {}", key,
                    text.size(), bytes, length));
  }
  const auto end = text.end() - static_cast<std::ptrdiff_t>(padding);
  if (!std::all_of(text.begin(), end, is_base64_digit) ||
      !std::all_of(end, text.end(), [](char c) { return c == '='; })) {
    throw JsonError(fmt::format("\"{}\" is no base64", key));
  }
  return text;
}

}  // namespace polyattn::report
