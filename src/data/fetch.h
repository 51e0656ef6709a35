// Brings a set of the catalogue into the cache.
//
// It can be killed at any instant: the set then is there as it was before, and
// the next call goes on with the download.
#pragma once

#include <filesystem>
#include <string_view>

#include "data/cache.h"
#include "data/catalogue.h"
#include "data/download.h"

namespace polyattn::data {

struct FetchOptions {
  // Empty, or the archive, from elsewhere.
  std::filesystem::path from = {};
  // Even if the set is there.
  bool force = false;
};

struct FetchResult {
  SetPlace place;
  bool was_there = false;  // nothing had to be done
};

// Throws DataError.
FetchResult fetch(const SetEntry& entry, const FetchOptions& options,
                  FetchWatcher& watcher);

}  // namespace polyattn::data
