// What the matrices of RUN/maps.json are over: the same for all, or told by
// layer (report/maps.h).
#pragma once

#include <cstdint>
#include <map>

#include "base/json_text.h"

namespace polyattn::report {

// The pictures of the inputs, for checking what lies on them.
struct MapPicture {
  std::int64_t width, height, patch;
};

// Throws base::JsonError if a layer's places are not those of the picture.
class MapLayer {
 public:
  // Of a document without layers.
  static MapLayer of_all(const base::Json& json);
  static MapLayer of_layer(const base::Json& json);

  std::int64_t rows() const { return rows_; }
  std::int64_t columns() const { return columns_; }
  // 0: none.
  std::int64_t windows() const { return windows_; }
  // What is known of it, for the document.
  const base::Json& json() const { return json_; }

  void check_picture(const MapPicture& picture) const;
  void check_tokens(std::int64_t tokens) const;

 private:
  void set_windows(const base::Json& json);

  std::int64_t rows_ = 0, columns_ = 0, prefix_ = 0, patch_ = 0, windows_ = 0;
  std::int64_t map_height_ = 0, map_width_ = 0;
  bool over_tokens_ = false;  // of the input, all of them
  base::Json json_;
};

using MapLayers = std::map<std::int64_t, MapLayer>;  // by number

// The layers of a document that has them.
MapLayers map_layers_of(const base::Json& json);

}  // namespace polyattn::report
