#include "data/decode.h"

#include <fmt/format.h>

#include "data/file.h"
#include "data/jpeg.h"
#include "data/png.h"
#include "data/sets.h"

namespace polyattn::data {
namespace {

constexpr std::uint64_t kMaxImageBytes = std::uint64_t{1} << 29;

}  // namespace

std::vector<std::byte> read_image_file(const std::filesystem::path& path) {
  std::vector<std::byte> bytes = read_bytes(path, kMaxImageBytes);
  if (is_png(bytes) || is_jpeg(bytes)) return bytes;
  throw DataError(
      fmt::format("{}: this is neither a PNG nor a JPEG; remove or replace it",
                  path.string()));
}

ImageSize image_size(std::span<const std::byte> bytes,
                     const std::string& source) {
  return is_png(bytes) ? png_size(bytes, source) : jpeg_size(bytes, source);
}

RgbImage decode_image(std::span<const std::byte> bytes, std::size_t shrink,
                      const std::string& source) {
  return is_png(bytes) ? decode_png(bytes, source)
                       : decode_shrunk_jpeg(bytes, shrink, source);
}

}  // namespace polyattn::data
