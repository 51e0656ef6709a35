#include "data/cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "data/sets.h"

namespace polyattn::data {
namespace {

namespace fs = std::filesystem;

// Empty if it is not set.
std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool ends_with(const fs::path& path, std::string_view ending) {
  return path.filename().string().ends_with(ending);
}

bool has_file(const fs::path& folder, const FileEntry& file) {
  std::error_code error;
  const fs::path path = folder / file.name;
  if (!fs::is_regular_file(path, error)) return false;
  const std::uintmax_t size = fs::file_size(path, error);
  // How long a gzipped file is depends on who compressed it.
  return !error && (file.gzipped ? size > 0 : size == file.size);
}

bool has_group(const fs::path& folder, const FileGroup& group) {
  std::uint64_t count = 0;
  std::uint64_t size = 0;
  std::error_code error;
  for (fs::directory_iterator i(folder, error), end; !error && i != end;
       i.increment(error)) {
    if (!ends_with(i->path(), group.ending)) continue;
    ++count;
    size += i->file_size(error);
  }
  return !error && count == group.count && size == group.size;
}

bool is_whole(const SetEntry& entry, const fs::path& folder) {
  for (const FileEntry& file : entry.files) {
    if (!has_file(folder, file)) return false;
  }
  return !entry.group || has_group(folder, *entry.group);
}

// As the XDG base directory specification has it; Debian's data sets lie in
// datasets/ of these.
std::vector<fs::path> installed_folders(const SetEntry& entry) {
  if (entry.origin != Origin::kDebian) return {};
  std::string list = variable("XDG_DATA_DIRS");
  if (list.empty()) list = "/usr/local/share:/usr/share";
  std::vector<fs::path> folders;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(':', begin), list.size());
    const fs::path folder = list.substr(begin, end - begin);
    if (folder.is_absolute()) {
      folders.push_back(folder / "datasets" / entry.name);
    }
    begin = end + 1;
  }
  return folders;
}

}  // namespace

fs::path cache_root() {
  if (const fs::path root = variable("POLYATTN_DATA"); !root.empty()) {
    return fs::absolute(root);
  }
  // The specification tells us to ignore a relative path here.
  if (const fs::path cache = variable("XDG_CACHE_HOME"); cache.is_absolute()) {
    return cache / "polyattn";
  }
  if (const fs::path home = variable("HOME"); home.is_absolute()) {
    return home / ".cache" / "polyattn";
  }
  throw DataError(
      "there is no folder for data sets: neither POLYATTN_DATA nor HOME is "
      "set; set POLYATTN_DATA to a folder");
}

fs::path cache_folder(std::string_view name) { return cache_root() / name; }

std::string_view name_of(SetState state) {
  switch (state) {
    case SetState::kAbsent:
      return "absent";
    case SetState::kFetched:
      return "fetched";
    case SetState::kInstalled:
      return "installed";
    case SetState::kGenerated:
      return "made when first used";
    case SetState::kDamaged:
      return "damaged";
  }
  return "";
}

SetPlace locate(const SetEntry& entry) {
  const fs::path cached = cache_folder(entry.name);
  if (entry.origin == Origin::kGenerated) return {SetState::kGenerated, cached};
  std::error_code error;
  if (fs::exists(cached, error)) {
    const bool whole = is_whole(entry, cached);
    return {whole ? SetState::kFetched : SetState::kDamaged, cached};
  }
  for (const fs::path& folder : installed_folders(entry)) {
    if (is_whole(entry, folder)) return {SetState::kInstalled, folder};
  }
  return {SetState::kAbsent, cached};
}

fs::path require_set(const SetEntry& entry) {
  SetPlace place = locate(entry);
  switch (place.state) {
    case SetState::kAbsent:
      throw DataError(fmt::format(
          "the data set {} is not there (looked for {}); fetch it: polyattn "
          "data fetch {}",
          entry.name, place.path.string(), entry.name));
    case SetState::kDamaged:
      throw DataError(fmt::format(
          "the data set {} in {} lacks files or has files of another size; "
          "mend it: polyattn data fetch --force {}",
          entry.name, place.path.string(), entry.name));
    default:
      return std::move(place.path);
  }
}

fs::path require_set(std::string_view name) {
  const SetEntry* entry = find_set(catalogue(), name);
  if (entry == nullptr) {
    throw DataError(
        fmt::format("there is no data set '{}'; see polyattn data list", name));
  }
  return require_set(*entry);
}

}  // namespace polyattn::data
