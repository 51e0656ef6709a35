#include "data/pathfinder_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/atomic_file.h"
#include "data/cache.h"
#include "data/file.h"
#include "data/generated.h"
#include "data/pathfinder.h"
#include "data/sha256.h"

namespace polyattn::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTrainImages = "train.pathfinder";
constexpr const char* kTestImages = "test.pathfinder";

std::string header_of(std::span<const std::byte> pixels) {
  return fmt::format("polyattn-pathfinder {} {}\n",
                     pixels.size() / kPathfinderLength, sha256_of(pixels));
}

SequenceSet read_part(const fs::path& path, std::int64_t count) {
  SequenceSet set = parse_pathfinder_file(read_bytes(path), path.string());
  if (std::cmp_equal(set.count(), count)) return set;
  throw DataError(fmt::format("cannot read {}: it has {} images, not {}",
                              path.string(), set.count(), count));
}

SequenceSplits read_images(const fs::path& folder,
                           const PathfinderSource& source) {
  SequenceSplits splits = empty_pathfinder();
  splits.train = read_part(folder / kTrainImages, source.train_count);
  splits.test = read_part(folder / kTestImages, source.test_count);
  return splits;
}

}  // namespace

SequenceSet parse_pathfinder_file(std::span<const std::byte> bytes,
                                  const std::string& name) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()),
                              bytes.size());
  const std::size_t end = std::min(text.find('\n'), text.size());
  const auto pixels = bytes.subspan(std::min(end + 1, text.size()));
  if (pixels.empty() || pixels.size() % kPathfinderLength != 0) {
    throw DataError(
        fmt::format("cannot read {}: it has {} bytes of pixels, which are not "
                    "whole images of {}",
                    name, pixels.size(), kPathfinderLength));
  }
  if (text.substr(0, end + 1) != header_of(pixels)) {
    throw DataError(fmt::format(
        "cannot read {}: its first line is not that of what follows", name));
  }
  const auto* first = reinterpret_cast<const std::uint8_t*>(pixels.data());
  return pathfinder_set({first, first + pixels.size()});
}

void write_pathfinder_file(const fs::path& path, const SequenceSet& set) {
  const auto pixels = std::as_bytes(std::span(set.tokens));
  const std::string header = header_of(pixels);
  try {
    base::AtomicFile file(path);
    file.write(std::as_bytes(std::span(header)));
    file.write(pixels);
    file.commit();
  } catch (const std::system_error& error) {
    throw DataError(error.what());
  }
}

fs::path pathfinder_folder(const PathfinderSource& source) {
  return cache_folder("pathfinder") /
         fmt::format("v{}-{}-{}-{}-{}", kPathfinderVersion,
                     source.contour_length, source.train_count,
                     source.test_count, source.seed);
}

SequenceSplits load_pathfinder(const PathfinderSource& source) {
  const fs::path folder = pathfinder_folder(source);
  return load_generated(
      folder, [&] { return read_images(folder, source); },
      [&](const fs::path& made) {
        SequenceSplits splits = generate_pathfinder(source);
        write_pathfinder_file(made / kTrainImages, splits.train);
        write_pathfinder_file(made / kTestImages, splits.test);
        return splits;
      });
}

}  // namespace polyattn::data
