#include "report/maps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <tuple>

#include "base/json_text.h"
#include "base/message.h"
#include "report/text.h"

namespace polyattn::report {
namespace {

using base::Json;
using base::JsonError;

constexpr std::int64_t kMaxSide = 4096;
constexpr std::size_t kMaxInputs = 64;
constexpr std::size_t kMaxLabel = 200;
constexpr std::size_t kMaxToken = 64;

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

bool is_base64_digit(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
         (c >= '0' && c <= '9') || c == '+' || c == '/';
}

// Of exactly `bytes` bytes.
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

// The size of the matrices, and what a row or column stands for.
struct Sides {
  std::int64_t rows;
  std::int64_t columns;
  bool class_token;
  std::int64_t prefix;  // before the tokens

  std::int64_t tokens() const { return columns - prefix; }
};

// The class token, and what may follow it.
std::int64_t prefix_of(const Json& json, bool class_token) {
  if (!json.contains("prefix")) return class_token ? 1 : 0;
  const std::int64_t prefix = count_at(json, "prefix", 2);
  if (class_token) return prefix;
  throw JsonError(
      fmt::format("\"prefix\" is {}, but there is no class token", prefix));
}

Sides sides_of(const Json& json) {
  const Json& class_token = member(json, "class_token");
  if (!class_token.is_boolean()) {
    throw JsonError("\"class_token\" is neither true nor false");
  }
  return {count_at(json, "rows", 1), count_at(json, "columns", 1),
          class_token.get<bool>(), prefix_of(json, class_token.get<bool>())};
}

void check_tokens(std::int64_t tokens, const Sides& sides) {
  if (tokens == sides.tokens()) return;
  throw JsonError(fmt::format("an input has {} tokens, the maps have {}",
                              tokens, sides.tokens()));
}

Json image_of(const Json& input, const Sides& sides) {
  const Json& image = member(input, "image");
  const std::int64_t width = count_at(image, "width", 1);
  const std::int64_t height = count_at(image, "height", 1);
  const std::int64_t channels = count_at(image, "channels", 1);
  const std::int64_t patch = count_at(image, "patch", 1);
  if (channels != 1 && channels != 3) {
    throw JsonError(
        fmt::format("an image has {} channels, must be 1 or 3", channels));
  }
  check_tokens((width / patch) * (height / patch), sides);
  return {{"width", width},
          {"height", height},
          {"channels", channels},
          {"patch", patch},
          {"pixels", base64_at(image, "pixels", width * height * channels)}};
}

Json tokens_of(const Json& input, const Sides& sides) {
  Json tokens = Json::array();
  for (const Json& token : filled_list(input, "tokens")) {
    if (!token.is_string()) throw JsonError("a token is no string");
    tokens.push_back(cut_text(token.get<std::string>(), kMaxToken));
  }
  check_tokens(static_cast<std::int64_t>(tokens.size()), sides);
  return tokens;
}

Json input_of(const Json& json, const Sides& sides) {
  if (!json.is_object()) throw JsonError("an input is no object");
  const std::string kind = string_at(json, "kind");
  Json input = {{"label", cut_text(string_at(json, "label"), kMaxLabel)},
                {"kind", kind}};
  if (kind == "image") {
    input["image"] = image_of(json, sides);
  } else if (kind == "text") {
    input["tokens"] = tokens_of(json, sides);
  } else {
    throw JsonError("an input is neither image nor text");
  }
  return input;
}

Json map_of(const Json& json, const Sides& sides) {
  if (!json.is_object()) throw JsonError("a map is no object");
  const Json& scale = member(json, "scale");
  if (!scale.is_number() || !(scale.get<double>() >= 0)) {
    throw JsonError("\"scale\" is no number from 0 on");
  }
  return {{"input", count_at(json, "input", 0)},
          {"layer", count_at(json, "layer", 0)},
          {"head", count_at(json, "head", 0)},
          {"scale", scale.get<double>()},
          {"values", base64_at(json, "values", sides.rows * sides.columns)}};
}

}  // namespace

Maps parse_maps(std::string_view text) {
  if (text.size() > kMaxMapsBytes) {
    throw JsonError(fmt::format("it has more than {} bytes", kMaxMapsBytes));
  }
  const Json json = base::parse_json(text);
  if (!json.is_object()) throw JsonError("it is no JSON object");
  const Sides sides = sides_of(json);
  Maps maps;
  maps.head_ = fmt::format(R"("class_token":{},"rows":{},"columns":{})",
                           sides.class_token, sides.rows, sides.columns);
  if (sides.prefix > 1) {
    maps.head_ += fmt::format(R"(,"prefix":{})", sides.prefix);
  }
  for (const Json& input : filled_list(json, "inputs")) {
    if (maps.inputs_.size() == kMaxInputs) {
      throw JsonError(fmt::format("it has more than {} inputs", kMaxInputs));
    }
    maps.inputs_.push_back({base::printed(input_of(input, sides)), ""});
  }
  std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>> seen;
  for (const Json& entry : filled_list(json, "maps")) {
    const Json map = map_of(entry, sides);
    const auto input = map["input"].get<std::size_t>();
    if (input >= maps.inputs_.size()) {
      throw JsonError(fmt::format("a map is of input {}, there are {}", input,
                                  maps.inputs_.size()));
    }
    if (!seen.emplace(input, map["layer"], map["head"]).second) {
      throw JsonError("two maps are of the same input, layer and head");
    }
    std::string& list = maps.inputs_[input].maps;
    list += (list.empty() ? "" : ",") + base::printed(map);
  }
  return maps;
}

std::string Maps::text(std::size_t inputs) const {
  std::string descriptions, lists;
  for (std::size_t i = 0; i < std::min(inputs, inputs_.size()); ++i) {
    const Input& input = inputs_[i];
    descriptions += (i == 0 ? "" : ",") + input.description;
    if (input.maps.empty()) continue;
    lists += (lists.empty() ? "" : ",") + input.maps;
  }
  return fmt::format(R"({{"inputs":[{}],{},"maps":[{}]}})", descriptions, head_,
                     lists);
}

std::size_t Maps::bytes(std::size_t inputs) const {
  constexpr std::size_t kBetween = 30;  // names, brackets and commas
  std::size_t sum = head_.size() + kBetween;
  for (std::size_t i = 0; i < std::min(inputs, inputs_.size()); ++i) {
    sum += inputs_[i].description.size() + inputs_[i].maps.size() + 2;
  }
  return sum;
}

std::size_t Maps::inputs_within(std::size_t limit) const {
  std::size_t count = 1;
  while (count < inputs() && bytes(count + 1) <= limit) ++count;
  return count;
}

}  // namespace polyattn::report
