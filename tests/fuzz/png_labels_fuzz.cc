// Any bytes are a PNG, a JPEG, JSON labels, or a DataError, never anything
// else. The first byte of the input, modulo 4, says what is tried:
//   0  a PNG
//   1  a PNG whose checksums are put right first: bytes at random would never
//      get past them
//   2  a JPEG
//   3  labels
#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/image.h"
#include "data/jpeg.h"
#include "data/labels.h"
#include "data/png.h"
#include "data/sets.h"

namespace {

using polyattn::data::DataError;
using polyattn::data::RgbImage;

void require(bool condition, const char* message) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", message);
  std::abort();
}

std::uint32_t number_at(const std::vector<std::uint8_t>& bytes, std::size_t i) {
  return std::uint32_t{bytes[i]} << 24 | std::uint32_t{bytes[i + 1]} << 16 |
         std::uint32_t{bytes[i + 2]} << 8 | bytes[i + 3];
}

// Chunks of length, name, content and checksum follow a signature of 8 bytes.
std::vector<std::uint8_t> with_checksums(std::vector<std::uint8_t> bytes) {
  std::size_t at = 8;
  while (at + 12 <= bytes.size()) {
    const std::size_t length = number_at(bytes, at);
    if (length > bytes.size() - at - 12) break;
    const auto crc = static_cast<std::uint32_t>(
        ::crc32(0, &bytes[at + 4], static_cast<uInt>(length + 4)));
    at += length + 8;
    for (const int shift : {24, 16, 8, 0}) {
      bytes[at++] = static_cast<std::uint8_t>(crc >> shift & 0xff);
    }
  }
  return bytes;
}

void check(const RgbImage& image) {
  constexpr std::size_t kSize = 3;
  require(image.width > 0 && image.height > 0, "an image without pixels");
  require(image.pixels.size() == image.width * image.height * 3,
          "the size is not the pixels'");
  std::vector<std::uint8_t> out(3 * kSize * kSize);
  polyattn::data::scale_and_crop(image, kSize, out.data());
}

void check_labels(std::string_view text) {
  const auto labels = polyattn::data::parse_labels(
      text, {.max_count = 8, .classes = 10}, "input");
  require(labels.size() <= 8, "too many labels");
  for (const std::int32_t label : labels) {
    require(label >= 0 && label < 10, "a label out of range");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data + 1, size - 1));
  try {
    switch (data[0] % 4) {
      case 0:
        check(polyattn::data::decode_png(bytes, "input"));
        break;
      case 1: {
        const auto right = with_checksums({data + 1, data + size});
        check(polyattn::data::decode_png(std::as_bytes(std::span(right)),
                                         "input"));
        break;
      }
      case 2:
        check(polyattn::data::decode_jpeg(bytes, 3, "input"));
        break;
      default:
        check_labels(
            {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    }
  } catch (const DataError& error) {
    require(std::string(error.what()).starts_with("input"), error.what());
  }
  return 0;
}
