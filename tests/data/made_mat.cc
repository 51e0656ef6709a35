#include "data/made_mat.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <bit>

namespace polyattn::data::test {
namespace {

std::string little(std::uint64_t value, std::size_t size) {
  std::string bytes;
  for (std::size_t i = 0; i < size; ++i) {
    bytes += static_cast<char>(value >> (8 * i));
  }
  return bytes;
}

}  // namespace

std::string mat_element(std::uint32_t type, std::string_view data) {
  const auto size = static_cast<std::uint32_t>(data.size());
  std::string bytes = size > 0 && size <= 4 ? little(type | size << 16, 4)
                                            : little(type, 4) + little(size, 4);
  bytes += data;
  bytes.resize((bytes.size() + 7) / 8 * 8, '\0');
  return bytes;
}

std::string mat_array(std::uint32_t array_class,
                      std::vector<std::int32_t> sides, std::string_view name,
                      std::string_view rest) {
  std::string dimensions;
  for (const std::int32_t side : sides) {
    dimensions += little(static_cast<std::uint32_t>(side), 4);
  }
  return mat_element(14, mat_element(6, little(array_class, 8)) +
                             mat_element(5, dimensions) + mat_element(1, name) +
                             std::string(rest));
}

std::string mat_number(double value) {
  return mat_array(
      6, {1, 1}, "",
      mat_element(9, little(std::bit_cast<std::uint64_t>(value), 8)));
}

std::string mat_small_number(std::uint8_t value) {
  return mat_array(6, {1, 1}, "", mat_element(2, little(value, 1)));
}

std::string mat_text(std::string_view text) {
  std::string wide;
  for (const char letter : text) {
    wide += little(static_cast<unsigned char>(letter), 2);
  }
  return mat_array(4, {1, static_cast<std::int32_t>(text.size())}, "",
                   mat_element(4, wide));
}

std::string mat_struct(std::string_view name,
                       const std::vector<std::string>& fields,
                       const std::vector<std::string>& cells) {
  constexpr std::size_t kWidth = 32;
  std::string names, values;
  for (const std::string& field : fields) {
    names += field + std::string(kWidth - field.size(), '\0');
  }
  for (const std::string& cell : cells) values += cell;
  const auto count = static_cast<std::int32_t>(cells.size() / fields.size());
  return mat_array(
      2, {count, 1}, name,
      mat_element(5, little(kWidth, 4)) + mat_element(1, names) + values);
}

std::string mat_file(std::string_view elements) {
  std::string header = "MATLAB 5.0 MAT-file, made up";
  header.resize(116, ' ');
  header += std::string(8, '\0') + little(0x0100, 2) + "IM";
  return header + std::string(elements);
}

std::string mat_compressed(std::string_view element) {
  uLongf size = ::compressBound(element.size());
  std::string packed(size, '\0');
  EXPECT_EQ(::compress(reinterpret_cast<Bytef*>(packed.data()), &size,
                       reinterpret_cast<const Bytef*>(element.data()),
                       element.size()),
            Z_OK);
  packed.resize(size);
  return little(15, 4) + little(size, 4) + packed;  // nothing fills it up
}

std::string mat_synsets(const std::vector<Synset>& synsets) {
  std::vector<std::string> cells;
  for (const Synset& synset : synsets) {
    cells.push_back(mat_small_number(static_cast<std::uint8_t>(synset.id)));
    cells.push_back(mat_text(synset.wnid));
    cells.push_back(mat_text("a word, na\xefve"));
    cells.push_back(mat_number(synset.children));
    // No number, but a list of them; or nothing.
    cells.push_back(synset.children > 0
                        ? mat_array(6, {1, 2}, "", mat_element(2, "\1\2"))
                        : mat_element(14, ""));
  }
  return mat_struct(
      "synsets", {"ILSVRC2012_ID", "WNID", "words", "num_children", "children"},
      cells);
}

}  // namespace polyattn::data::test
