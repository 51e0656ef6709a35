#include "data/fetch.h"

#include <fmt/format.h>

#include "data/archive.h"
#include "data/cifar.h"
#include "data/file.h"
#include "data/sets.h"
#include "data/staging.h"
#include "data/verify.h"

namespace polyattn::data {
namespace {

namespace fs = std::filesystem;

bool is_there(const SetPlace& place) {
  return place.state != SetState::kAbsent && place.state != SetState::kDamaged;
}

void unpack_into(const SetEntry& entry, const fs::path& archive,
                 const Staging& staging) {
  const bool converts = entry.conversion != Conversion::kNone;
  const fs::path folder = converts ? staging.scratch() : staging.content();
  unpack({.archive = archive,
          .kind = entry.origin == Origin::kDebian ? ArchiveKind::kDebian
                                                  : ArchiveKind::kTarball,
          .members = entry.members,
          .folder = folder});
  if (converts) cifar_png_to_binary(folder, staging.content());
}

// The archive was the right one, so that only we, or the disk, can be wrong.
void check_content(const SetEntry& entry, const fs::path& folder) {
  for (const FileCheck& check : verify(entry, folder)) {
    if (check.right()) continue;
    throw DataError(fmt::format(
        "{}: what was unpacked is wrong, and was not kept: {}. Try again, and "
        "if that does not help, report it as a bug.",
        entry.name, check.problem));
  }
}

}  // namespace

FetchResult fetch(const SetEntry& entry, const FetchOptions& options,
                  FetchWatcher& watcher) {
  const bool generated = entry.origin == Origin::kGenerated;
  SetPlace place = locate(entry);
  if (generated || (is_there(place) && !options.force)) return {place, true};
  if (!options.from.empty()) check_archive(entry, options.from);

  Staging staging(cache_folder(entry.name), [&] {
    watcher.step("waiting for another polyattn that fetches this");
  });
  // Perhaps that other one has done it.
  place = locate(entry);
  if (is_there(place) && !options.force) return {place, true};

  const fs::path archive =
      options.from.empty()
          ? download(entry, {staging.downloads(), staging.scratch()}, watcher)
          : options.from;
  watcher.step("unpacking");
  unpack_into(entry, archive, staging);
  watcher.step("checking");
  check_content(entry, staging.content());
  staging.commit();
  return {locate(entry), false};
}

}  // namespace polyattn::data
