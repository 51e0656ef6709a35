#include "report/map_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "report/map_fields.h"

namespace polyattn::report {
namespace {

using base::Json;
using base::JsonError;

constexpr std::array<std::string_view, 4> kKinds = {"token", "window",
                                                    "channel", "class"};

// The class token, and what may follow it.
std::int64_t prefix_of(const Json& json, bool class_token) {
  if (!json.contains("prefix")) return class_token ? 1 : 0;
  const std::int64_t prefix = count_at(json, "prefix", 2);
  if (class_token) return prefix;
  throw JsonError(
      fmt::format("\"prefix\" is {}, but there is no class token", prefix));
}

[[noreturn]] void refuse_size(std::int64_t layer, std::string_view kind,
                              const MapLayer& sides) {
  throw JsonError(fmt::format("layer {} is of kind {}, but has {} x {} weights",
                              layer, kind, sides.rows(), sides.columns()));
}

}  // namespace

MapLayer MapLayer::of_all(const Json& json) {
  const Json& class_token = member(json, "class_token");
  if (!class_token.is_boolean()) {
    throw JsonError("\"class_token\" is neither true nor false");
  }
  MapLayer all;
  all.rows_ = count_at(json, "rows", 1);
  all.columns_ = count_at(json, "columns", 1);
  all.prefix_ = prefix_of(json, class_token.get<bool>());
  all.over_tokens_ = true;
  all.json_ = {{"class_token", class_token},
               {"rows", all.rows_},
               {"columns", all.columns_}};
  if (all.prefix_ > 1) all.json_["prefix"] = all.prefix_;
  return all;
}

void MapLayer::set_windows(const Json& json) {
  const Json& windows = member(json, "windows");
  map_height_ = count_at(windows, "height", 1);
  map_width_ = count_at(windows, "width", 1);
  const std::int64_t side = count_at(windows, "side", 1);
  const std::int64_t down = count_at(windows, "down", 0);
  const std::int64_t right = count_at(windows, "right", 0);
  if (down >= side || right >= side) {
    throw JsonError(fmt::format("windows of {} tokens are shifted by {} and {}",
                                side, down, right));
  }
  windows_ =
      ((map_height_ + side - 1) / side) * ((map_width_ + side - 1) / side);
  json_["windows"] = {{"height", map_height_},
                      {"width", map_width_},
                      {"side", side},
                      {"down", down},
                      {"right", right}};
  if (rows_ != side * side || columns_ != rows_) {
    refuse_size(json_["layer"].get<std::int64_t>(), "window", *this);
  }
}

MapLayer MapLayer::of_layer(const Json& json) {
  if (!json.is_object()) throw JsonError("a layer is no object");
  const std::int64_t number = count_at(json, "layer", 0);
  const std::string kind = string_at(json, "kind");
  if (std::find(kKinds.begin(), kKinds.end(), kind) == kKinds.end()) {
    throw JsonError(fmt::format("layer {} is of no known kind", number));
  }
  MapLayer layer;
  layer.rows_ = count_at(json, "rows", 1);
  layer.columns_ = count_at(json, "columns", 1);
  layer.json_ = {{"layer", number},
                 {"kind", kind},
                 {"stage", count_at(json, "stage", 0)},
                 {"rows", layer.rows_},
                 {"columns", layer.columns_}};
  if (kind == "channel") {
    if (layer.rows_ != layer.columns_) refuse_size(number, kind, layer);
    return layer;
  }
  layer.patch_ = count_at(json, "patch", 1);
  layer.json_["patch"] = layer.patch_;
  if (kind == "window") {
    layer.set_windows(json);
    return layer;
  }
  layer.over_tokens_ = true;
  layer.prefix_ = count_at(json, "prefix", 0);
  layer.json_["prefix"] = layer.prefix_;
  if (kind == "class" && layer.rows_ != 1) refuse_size(number, kind, layer);
  return layer;
}

void MapLayer::check_tokens(std::int64_t tokens) const {
  if (over_tokens_ && tokens == columns_ - prefix_) return;
  if (!over_tokens_ && windows_ == 0) return;
  throw JsonError(fmt::format(
      "an input has {} tokens, the maps have {}", tokens,
      over_tokens_ ? columns_ - prefix_ : map_height_ * map_width_));
}

void MapLayer::check_picture(const MapPicture& picture) const {
  const std::int64_t patch = patch_ > 0 ? patch_ : picture.patch;
  if (windows_ == 0) {
    check_tokens((picture.width / patch) * (picture.height / patch));
    return;
  }
  // What merging fills up is beyond the picture; whole tokens are not.
  if ((map_height_ - 1) * patch < picture.height &&
      (map_width_ - 1) * patch < picture.width) {
    return;
  }
  throw JsonError(fmt::format(
      "a map of {} x {} tokens of {} pixels is larger than its image, {} x {}",
      map_height_, map_width_, patch, picture.height, picture.width));
}

MapLayers map_layers_of(const Json& json) {
  MapLayers layers;
  for (const Json& entry : filled_list(json, "layers")) {
    MapLayer layer = MapLayer::of_layer(entry);
    const auto number = layer.json().at("layer").get<std::int64_t>();
    if (!layers.emplace(number, std::move(layer)).second) {
      throw JsonError(fmt::format("layer {} is described twice", number));
    }
  }
  return layers;
}

}  // namespace polyattn::report
