// JPEG files, decoded in memory.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "data/image.h"

namespace polyattn::data {

bool is_jpeg(std::span<const std::byte> bytes);

// Grey, colour and CMYK images as RGB. An image much larger than min_side
// pixels is decoded at a half, a quarter or an eighth of its size, which is
// faster; both sides keep at least twice min_side. Throws DataError, which
// names the source.
RgbImage decode_jpeg(std::span<const std::byte> bytes, std::size_t min_side,
                     const std::string& source);

}  // namespace polyattn::data
