// The idx format: a type, a shape, and numbers in big-endian order. MNIST,
// Fashion-MNIST and their kin are four such files of bytes, gzipped or not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "data/sets.h"

namespace polyattn::data {

struct IdxArray {
  std::vector<std::size_t> shape;
  std::span<const std::byte> values;  // as many as the shape says
};

// The bytes must outlive the result. Throws DataError, which names the source,
// unless they are an idx array of unsigned bytes and nothing else.
IdxArray parse_idx(std::span<const std::byte> bytes, const std::string& source);

bool is_idx_folder(const std::filesystem::path& folder);

// Images of [1, height, width] without names of classes. Throws DataError.
ImageSplits load_idx_folder(const std::filesystem::path& folder);

}  // namespace polyattn::data
