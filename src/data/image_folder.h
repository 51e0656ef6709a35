// A folder of images: train/ and test/ (or val/ or validation/), in each a
// folder a class, in it JPEG and PNG files, at any depth.
#pragma once

#include <cstdint>
#include <filesystem>

#include "data/sets.h"

namespace polyattn::data {

bool is_image_folder(const std::filesystem::path& folder);

// Its files. Classes are in the order of their names' bytes. Throws DataError.
ImageFileSplits list_image_folder(const std::filesystem::path& folder);

// RGB images of image_size x image_size pixels, scaled and cropped. Decodes on
// all cores, and throws DataError; of several damaged files, it names the
// first.
ImageSplits load_image_folder(const std::filesystem::path& folder,
                              std::int64_t image_size);

}  // namespace polyattn::data
