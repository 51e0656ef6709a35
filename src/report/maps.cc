#include "report/maps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <tuple>

#include "base/json_text.h"
#include "report/map_fields.h"
#include "report/map_layers.h"
#include "report/text.h"

namespace polyattn::report {
namespace {

using base::Json;
using base::JsonError;

constexpr std::size_t kMaxInputs = 64;
constexpr std::size_t kMaxLabel = 200;
constexpr std::size_t kMaxToken = 64;

// Of a document: what its matrices are over.
struct Shape {
  std::optional<MapLayer> all;
  MapLayers layers;

  const MapLayer& of(std::int64_t layer) const {
    if (all) return *all;
    const auto found = layers.find(layer);
    if (found != layers.end()) return found->second;
    throw JsonError(
        fmt::format("a map is of layer {}, which is not described", layer));
  }
};

Shape shape_of(const Json& json) {
  if (json.contains("layers")) return {{}, map_layers_of(json)};
  return {MapLayer::of_all(json), {}};
}

Json image_of(const Json& input, const Shape& shape) {
  const Json& image = member(input, "image");
  const std::int64_t width = count_at(image, "width", 1);
  const std::int64_t height = count_at(image, "height", 1);
  const std::int64_t channels = count_at(image, "channels", 1);
  const std::int64_t patch = count_at(image, "patch", 1);
  if (channels != 1 && channels != 3) {
    throw JsonError(
        fmt::format("an image has {} channels, must be 1 or 3", channels));
  }
  const MapPicture picture{.width = width, .height = height, .patch = patch};
  if (shape.all) shape.all->check_picture(picture);
  for (const auto& [number, layer] : shape.layers) layer.check_picture(picture);
  return {{"width", width},
          {"height", height},
          {"channels", channels},
          {"patch", patch},
          {"pixels", base64_at(image, "pixels", width * height * channels)}};
}

Json tokens_of(const Json& input, const Shape& shape) {
  Json tokens = Json::array();
  for (const Json& token : filled_list(input, "tokens")) {
    if (!token.is_string()) throw JsonError("a token is no string");
    tokens.push_back(cut_text(token.get<std::string>(), kMaxToken));
  }
  const auto count = static_cast<std::int64_t>(tokens.size());
  if (shape.all) shape.all->check_tokens(count);
  for (const auto& [number, layer] : shape.layers) layer.check_tokens(count);
  return tokens;
}

Json input_of(const Json& json, const Shape& shape) {
  if (!json.is_object()) throw JsonError("an input is no object");
  const std::string kind = string_at(json, "kind");
  Json input = {{"label", cut_text(string_at(json, "label"), kMaxLabel)},
                {"kind", kind}};
  if (kind == "image") {
    input["image"] = image_of(json, shape);
  } else if (kind == "text") {
    input["tokens"] = tokens_of(json, shape);
  } else {
    throw JsonError("an input is neither image nor text");
  }
  return input;
}

Json map_of(const Json& json, const Shape& shape) {
  if (!json.is_object()) throw JsonError("a map is no object");
  const Json& scale = member(json, "scale");
  if (!scale.is_number() || !(scale.get<double>() >= 0)) {
    throw JsonError("\"scale\" is no number from 0 on");
  }
  const std::int64_t number = count_at(json, "layer", 0);
  const MapLayer& layer = shape.of(number);
  Json map = {
      {"input", count_at(json, "input", 0)},
      {"layer", number},
      {"head", count_at(json, "head", 0)},
      {"scale", scale.get<double>()},
      {"values", base64_at(json, "values", layer.rows() * layer.columns())}};
  if (layer.windows() == 0) return map;
  map["window"] = count_at(json, "window", 0);
  if (map["window"] >= layer.windows()) {
    throw JsonError(fmt::format("a map is of window {}, there are {}",
                                base::printed(map["window"]), layer.windows()));
  }
  return map;
}

// What a text of maps has beside inputs and maps.
std::string head_of(const Shape& shape) {
  Json head = Json::object();
  if (shape.all) {
    head = shape.all->json();
  } else {
    for (const auto& [number, layer] : shape.layers) {
      head["layers"].push_back(layer.json());
    }
  }
  const std::string text = base::printed(head);
  return text.substr(1, text.size() - 2);
}

}  // namespace

Maps parse_maps(std::string_view text) {
  if (text.size() > kMaxMapsBytes) {
    throw JsonError(fmt::format("it has more than {} bytes", kMaxMapsBytes));
  }
  const Json json = base::parse_json(text);
  if (!json.is_object()) throw JsonError("it is no JSON object");
  const Shape shape = shape_of(json);
  Maps maps;
  maps.head_ = head_of(shape);
  for (const Json& input : filled_list(json, "inputs")) {
    if (maps.inputs_.size() == kMaxInputs) {
      throw JsonError(fmt::format("it has more than {} inputs", kMaxInputs));
    }
    maps.inputs_.push_back({base::printed(input_of(input, shape)), ""});
  }
  std::set<std::tuple<std::size_t, Json, Json, Json>> seen;
  for (const Json& entry : filled_list(json, "maps")) {
    const Json map = map_of(entry, shape);
    const auto input = map["input"].get<std::size_t>();
    if (input >= maps.inputs_.size()) {
      throw JsonError(fmt::format("a map is of input {}, there are {}", input,
                                  maps.inputs_.size()));
    }
    const Json window = map.value("window", Json());
    if (!seen.emplace(input, map["layer"], map["head"], window).second) {
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
