// Files of images, JPEG or PNG by their content: there are PNGs that are named
// .jpg. What cameras say of the way up (EXIF) is ignored, as other toolkits do.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "data/image.h"

namespace polyattn::data {

// Throws DataError, as all of these: it names the file.
std::vector<std::byte> read_image_file(const std::filesystem::path& path);

ImageSize image_size(std::span<const std::byte> bytes,
                     const std::string& source);

// A JPEG at 1 / shrink of its size (data/jpeg.h), a PNG as it is.
RgbImage decode_image(std::span<const std::byte> bytes, std::size_t shrink,
                      const std::string& source);

}  // namespace polyattn::data
