// JPEG files, decoded in memory.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "data/image.h"

namespace polyattn::data {

bool is_jpeg(std::span<const std::byte> bytes);

// Of the header alone. Throws DataError, which names the source.
ImageSize jpeg_size(std::span<const std::byte> bytes,
                    const std::string& source);

// Grey, colour and CMYK images as RGB. An image much larger than min_side
// pixels is decoded at a half, a quarter or an eighth of its size, which is
// faster; both sides keep at least twice min_side. Throws DataError, which
// names the source.
RgbImage decode_jpeg(std::span<const std::byte> bytes, std::size_t min_side,
                     const std::string& source);

// The same at 1 / shrink of its size, rounded up; shrink is 1, 2, 4 or 8.
RgbImage decode_shrunk_jpeg(std::span<const std::byte> bytes,
                            std::size_t shrink, const std::string& source);

}  // namespace polyattn::data
