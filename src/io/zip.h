// The files in a zip archive, as they are stored there: nothing is
// decompressed, since torch.save does not compress. Archives may have been made
// by anyone.
//
//   local header, name, bytes      of each file
//   directory                      an entry for each: name, sizes, offset
//   end                            where the directory is
//
// What is too large for 32 bits stands in further fields (zip64), which torch
// writes the end with in any case. Checksums are not looked at: torch leaves
// them out if told so.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace polyattn::io {

struct ZipMember {
  std::string name;
  std::span<const std::byte> bytes;  // in the archive
  bool compressed = false;
};

// In the order of the directory, without folders. Throws TorchFileError if the
// archive is damaged or if a member is encrypted, overlaps with another, or has
// the name of another.
std::vector<ZipMember> zip_members(std::span<const std::byte> archive,
                                   std::string_view source);

}  // namespace polyattn::io
