// Takes files out of an archive that may have been made by anyone.
#pragma once

#include <filesystem>
#include <span>

#include "data/catalogue.h"

namespace polyattn::data {

enum class ArchiveKind {
  kTarball,  // a gzipped tar, as npm's packages are
  kDebian,   // a .deb: an ar archive that holds a compressed tar
};

struct UnpackJob {
  std::filesystem::path archive;
  ArchiveKind kind = ArchiveKind::kTarball;
  std::span<const Member> members;
  std::filesystem::path folder;
};

// Writes the members into the folder, under the last part of their paths. No
// other member is written, no name of the archive is used as a path, and links
// are never made, so nothing can end up elsewhere. Throws DataError if the
// archive is damaged, if a member is missing, occurs twice, is no regular file,
// or exceeds its size. The folder may then hold some of the files.
void unpack(const UnpackJob& job);

}  // namespace polyattn::data
