// Images of Pathfinder in a file: a line, then the pixels of all images. Every
// other image is connected, the second first.
//
//   polyattn-pathfinder 40000 DIGEST
//
// The digest is the SHA-256 of the pixels. Every function throws DataError,
// which names the file.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "data/load.h"
#include "data/sets.h"

namespace polyattn::data {

// `name` is that of the file, for messages.
SequenceSet parse_pathfinder_file(std::span<const std::byte> bytes,
                                  const std::string& name);

void write_pathfinder_file(const std::filesystem::path& path,
                           const SequenceSet& set);

// Where the set that these numbers describe is kept.
std::filesystem::path pathfinder_folder(const PathfinderSource& source);

}  // namespace polyattn::data
