// Photographs that nobody took: JPEGs with what costs a decoder time.
#pragma once

#include <cstdint>
#include <filesystem>

namespace polyattn::bench {

struct JpegSpec {
  int width = 500;
  int height = 375;
  int quality = 95;
  int count = 64;
  std::uint64_t seed = 1;
};

// train/CLASS/ and val/CLASS/ with two classes, each image in one of these, and
// the same images in both. Gives the mean size of a file in bytes. Throws
// std::runtime_error if they cannot be written.
double write_made_jpegs(const std::filesystem::path& folder,
                        const JpegSpec& spec);

}  // namespace polyattn::bench
