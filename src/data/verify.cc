#include "data/verify.h"

#include <fmt/format.h>

#include "data/file.h"
#include "data/gzip.h"
#include "data/sets.h"
#include "data/sha256.h"

namespace polyattn::data {
namespace {

namespace fs = std::filesystem;

std::string digest_of(const FileEntry& file, const fs::path& path) {
  if (!file.gzipped) return sha256_of_file(path);
  const std::vector<std::byte> packed = read_bytes(path, kMaxFileBytes);
  return sha256_of(gunzip(packed, file.size, path.string()));
}

// The lines that sha256sum prints.
std::string digest_of(const FileGroup& group, const fs::path& folder) {
  std::string lines;
  for (const std::string& name : names_in(folder)) {
    if (!name.ends_with(group.ending)) continue;
    lines += fmt::format("{}  {}\n", sha256_of_file(folder / name), name);
  }
  return sha256_of(lines);
}

template <typename Entry>
FileCheck check(const Entry& entry, std::string name, const fs::path& path) {
  FileCheck result{.name = std::move(name),
                   .expected = std::string(entry.sha256),
                   .found = {},
                   .problem = {}};
  try {
    result.found = digest_of(entry, path);
    if (result.found != result.expected) {
      result.problem =
          fmt::format("{}: its sha256 is {}, expected is {}", path.string(),
                      result.found, result.expected);
    }
  } catch (const DataError& error) {
    result.problem = error.what();
  }
  return result;
}

}  // namespace

std::vector<FileCheck> verify(const SetEntry& entry, const fs::path& folder) {
  std::vector<FileCheck> checks;
  for (const FileEntry& file : entry.files) {
    checks.push_back(check(file, std::string(file.name), folder / file.name));
  }
  if (entry.group) {
    FileCheck group =
        check(*entry.group, fmt::format("*{}", entry.group->ending), folder);
    if (!group.right()) {
      group.problem += fmt::format(
          " (over all files *{}, of which there are "
          "to be {})",
          entry.group->ending, entry.group->count);
    }
    checks.push_back(std::move(group));
  }
  return checks;
}

}  // namespace polyattn::data
