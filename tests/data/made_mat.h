// Files of MATLAB, version 5, as the format's description has them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace polyattn::data::test {

// An element: tag, data, and zeros up to eight bytes; short data within the
// tag.
std::string mat_element(std::uint32_t type, std::string_view data);

// A matrix: its class (6: double, 4: char, 2: struct), its sides, what follows.
std::string mat_array(std::uint32_t array_class,
                      std::vector<std::int32_t> sides, std::string_view name,
                      std::string_view rest);

std::string mat_number(double value);              // as a double
std::string mat_small_number(std::uint8_t value);  // stored in one byte
std::string mat_text(std::string_view text);       // in two bytes a letter

// `cells` of a struct, field after field of element after element.
std::string mat_struct(std::string_view name,
                       const std::vector<std::string>& fields,
                       const std::vector<std::string>& cells);

std::string mat_file(std::string_view elements);

// The same element, compressed.
std::string mat_compressed(std::string_view element);

struct Synset {
  int id;
  std::string wnid;
  int children = 0;
};

// As meta.mat of ImageNet's development kit, with a field that nobody needs.
std::string mat_synsets(const std::vector<Synset>& synsets);

}  // namespace polyattn::data::test
