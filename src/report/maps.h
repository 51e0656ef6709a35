// RUN/maps.json: attention matrices of a trained model on a few test inputs.
//
//   { "inputs": [ { "label": "Ankle boot", "kind": "image",
//                   "image": { "width": 28, "height": 28, "channels": 1,
//                              "patch": 4, "pixels": "base64, row by row" } },
//                 { "label": "", "kind": "text", "tokens": ["T", "h", "e"] } ],
//     "class_token": false, "rows": 49, "columns": 49,
//     "maps": [ { "input": 0, "layer": 0, "head": 0, "scale": 0.123,
//                 "values": "base64 of int8, row by row" } ] }
//
// A weight is value * scale / 127. With a class token, it is row and column 0;
// "prefix": 2 says that a distillation token follows it.
//
// Where layers differ, "layers" stands in the place of class_token, rows and
// columns, and a map of windows says which one it is of:
//
//   "layers": [ { "layer": 0, "kind": "window", "stage": 0, "rows": 16,
//                 "columns": 16, "patch": 2,
//                 "windows": { "height": 16, "width": 16, "side": 4,
//                              "down": 2, "right": 2 } },
//               { "layer": 1, "kind": "channel", "stage": 0, "rows": 24,
//                 "columns": 24 },
//               { "layer": 2, "kind": "class", "stage": 0, "rows": 1,
//                 "columns": 65, "patch": 4, "prefix": 1 } ]
//   "maps": [ { "input": 0, "layer": 0, "head": 0, "window": 3, ... } ]
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace polyattn::report {

inline constexpr std::size_t kMaxMapsBytes = 8 << 20;

// What was checked, as JSON text by input, so that fewer inputs can be shown
// than there are.
class Maps {
 public:
  std::size_t inputs() const { return inputs_.size(); }

  // The object above with the first `inputs` inputs, at least one.
  std::string text(std::size_t inputs) const;

  // About the length of that.
  std::size_t bytes(std::size_t inputs) const;

  // The most inputs whose text has no more bytes, but at least one.
  std::size_t inputs_within(std::size_t limit) const;

 private:
  friend Maps parse_maps(std::string_view text);

  struct Input {
    std::string description;
    std::string maps;  // separated by commas
  };

  std::string head_;  // what is beside inputs and maps
  std::vector<Input> inputs_;
};

// Throws base::JsonError, of one line, unless everything is there, the sizes
// agree, the numbers are finite and the base64 has the length that they ask
// for. Members that are not known are left out.
Maps parse_maps(std::string_view text);

}  // namespace polyattn::report
