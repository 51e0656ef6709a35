// Files of sequences: pairs of papers, and the images of Pathfinder. Any bytes
// either parse to a set whose parts agree or throw DataError, never anything
// else.
//
// The first byte of the input, modulo 3, says what the others are:
//   0  a file of pairs, in which '|' is a tab: tabs are rare otherwise
//   1  a file of images
//   2  the pixels of one, whose first line is then made for them
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "data/aan.h"
#include "data/pathfinder.h"
#include "data/pathfinder_file.h"
#include "data/sha256.h"

namespace {

using polyattn::data::DataError;
using polyattn::data::kPathfinderLength;
using polyattn::data::parse_aan_file;
using polyattn::data::parse_pathfinder_file;
using polyattn::data::SequenceSet;
using polyattn::data::sha256_of;

void require(bool condition, const char* message) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", message);
  std::abort();
}

void check_error(const DataError& error) {
  const std::string_view what = error.what();
  require(what.starts_with("cannot read x: "), "message without source");
  require(what.size() < 2000, "a message of any length");
  require(std::all_of(what.begin(), what.end(),
                      [](char c) { return c >= ' ' && c <= '~'; }),
          "a message that is not plain text");
}

void check_set(const SequenceSet& set, std::int64_t towers, std::int64_t most) {
  const auto sequences = static_cast<std::size_t>(towers) * set.count();
  require(set.towers == towers, "another number of towers");
  require(set.count() > 0, "an empty set");
  require(set.begin.size() == sequences + 1, "begin has another length");
  require(set.begin.front() == 0 &&
              std::cmp_equal(set.begin.back(), set.tokens.size()),
          "begin has other ends");
  for (std::size_t i = 0; i < sequences; ++i) {
    const std::int64_t length = set.begin[i + 1] - set.begin[i];
    require(length >= 1 && length <= most, "length out of range");
  }
  for (const std::int32_t label : set.labels) {
    require(label == 0 || label == 1, "label out of range");
  }
}

void check_pairs(std::string text) {
  constexpr std::int64_t kMaxLength = 5;
  std::replace(text.begin(), text.end(), '|', '\t');
  try {
    const SequenceSet set = parse_aan_file(text, "x", kMaxLength);
    check_set(set, 2, kMaxLength);
    require(std::count(set.tokens.begin(), set.tokens.end(), 0) == 0,
            "padding within a text");
    const auto lines = std::count(text.begin(), text.end(), '\n');
    const bool open = !text.ends_with('\n');
    require(std::cmp_equal(set.count(), lines + (open ? 1 : 0)),
            "other pairs than lines");
  } catch (const DataError& error) {
    check_error(error);
  }
}

void check_images(const std::string& text, bool right) {
  try {
    const SequenceSet set =
        parse_pathfinder_file(std::as_bytes(std::span(text)), "x");
    check_set(set, 1, kPathfinderLength);
    require(text.ends_with(std::string_view(
                reinterpret_cast<const char*>(set.tokens.data()),
                set.tokens.size())),
            "other pixels");
  } catch (const DataError& error) {
    check_error(error);
    require(!right, "a file that is right is refused");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  if (size == 0) return 0;
  // A copy, so that the sanitizer sees what is read beyond its end.
  const std::string rest(data + 1, data + size);
  if (data[0] % 3 == 0) {
    check_pairs(rest);
  } else if (data[0] % 3 == 1) {
    check_images(rest, false);
  } else {
    std::string pixels(static_cast<std::size_t>(kPathfinderLength), '\0');
    std::copy(rest.begin(),
              rest.begin() + static_cast<std::ptrdiff_t>(
                                 std::min(rest.size(), pixels.size())),
              pixels.begin());
    check_images("polyattn-pathfinder 1 " +
                     sha256_of(std::string_view(pixels)) + "\n" + pixels,
                 true);
  }
  return 0;
}
