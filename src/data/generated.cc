#include "data/generated.h"

#include <fmt/format.h>

#include <system_error>

#include "data/staging.h"

namespace polyattn::data {
namespace {

bool is_there(const std::filesystem::path& folder) {
  std::error_code error;
  return std::filesystem::exists(folder, error);
}

SequenceSplits read_kept(const std::filesystem::path& folder,
                         const std::function<SequenceSplits()>& read) {
  try {
    return read();
  } catch (const DataError& error) {
    throw DataError(
        fmt::format("{}; remove the folder {}, and it will be made again",
                    error.what(), folder.string()));
  }
}

}  // namespace

SequenceSplits load_generated(
    const std::filesystem::path& folder,
    const std::function<SequenceSplits()>& read,
    const std::function<SequenceSplits(const std::filesystem::path&)>& make) {
  if (is_there(folder)) return read_kept(folder, read);
  Staging staging(folder);
  // Another process may have made it while this one waited.
  if (is_there(folder)) return read_kept(folder, read);
  SequenceSplits splits = make(staging.content());
  staging.commit();
  return splits;
}

}  // namespace polyattn::data
