// Where data sets are: in the cache, or where a package installed them.
//
// The cache is one folder. A set is a folder in it, which appears whole or not
// at all (staging.h). Every function throws DataError.
#pragma once

#include <filesystem>
#include <string_view>

#include "data/catalogue.h"

namespace polyattn::data {

// $POLYATTN_DATA, or $XDG_CACHE_HOME/polyattn, or ~/.cache/polyattn: always an
// absolute path. Creates nothing.
std::filesystem::path cache_root();

// The folder of a set in the cache, be it there or not.
std::filesystem::path cache_folder(std::string_view name);

enum class SetState {
  kAbsent,
  kFetched,    // in the cache
  kInstalled,  // by a package of the system
  kGenerated,  // made when first used; never absent
  kDamaged,    // files are missing or have another size
};

std::string_view name_of(SetState state);

struct SetPlace {
  SetState state = SetState::kAbsent;
  // Where it is, or would be.
  std::filesystem::path path;
};

// Looks at names and sizes, not at digests: it takes no time. The cache comes
// before what is installed, so that `fetch` can mend.
SetPlace locate(const SetEntry& entry);

// The folder of a set of the catalogue, ready to be read. If it is absent or
// damaged, the error says which command fetches it.
std::filesystem::path require_set(const SetEntry& entry);
std::filesystem::path require_set(std::string_view name);

}  // namespace polyattn::data
