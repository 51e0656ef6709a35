// PNG files, decoded in memory.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "data/image.h"

namespace polyattn::data {

bool is_png(std::span<const std::byte> bytes);

// Of the header alone. Throws DataError, which names the source.
ImageSize png_size(std::span<const std::byte> bytes, const std::string& source);

// Every kind of PNG as 8-bit RGB. Transparency is ignored, as other toolkits
// do, so that their figures can be compared with ours. Throws DataError, which
// names the source.
RgbImage decode_png(std::span<const std::byte> bytes,
                    const std::string& source);

}  // namespace polyattn::data
