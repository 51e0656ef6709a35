// Sets that are generated when they are first asked for, and then kept.
#pragma once

#include <filesystem>
#include <functional>

#include "data/sets.h"

namespace polyattn::data {

// What `read` finds in the folder; if that is not there, what `make` gives,
// which is written to the folder it is handed and then kept. Two processes do
// not make the same set. Throws DataError; what is damaged can be removed, and
// the message says so.
SequenceSplits load_generated(
    const std::filesystem::path& folder,
    const std::function<SequenceSplits()>& read,
    const std::function<SequenceSplits(const std::filesystem::path&)>& make);

}  // namespace polyattn::data
