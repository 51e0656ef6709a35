// Small files of every format, made in memory by the libraries that others
// make them with.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace polyattn::data::test {

std::string gzipped(std::string_view content);

// An idx array of bytes.
std::string idx_bytes(const std::vector<std::uint32_t>& shape,
                      std::string_view values);

struct PngSpec {
  std::uint32_t width = 1;
  std::uint32_t height = 1;
  int colour_type = 2;  // PNG_COLOR_TYPE_RGB
  int bit_depth = 8;
  bool interlaced = false;
  std::string rows = {};     // as the file has them
  std::string palette = {};  // three bytes a colour
};

std::string png_bytes(const PngSpec& spec);

// 1 component is grey, 3 are RGB, 4 are CMYK as Adobe's programs store it, as
// it is or as YCCK.
std::string jpeg_bytes(std::uint32_t width, std::uint32_t height,
                       int components, std::string_view pixels,
                       bool ycck = false);

struct TarEntry {
  std::string name;
  std::string content = {};
  std::string symbolic_link = {};
  std::string hard_link = {};
};

std::string tarball(const std::vector<TarEntry>& entries);

// A Debian package with these in its data.tar.xz.
std::string debian_package(const std::vector<TarEntry>& entries);

}  // namespace polyattn::data::test
