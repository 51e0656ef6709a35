#include "data/hold_out.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/random.h"
#include "data/text.h"

namespace polyattn::data {
namespace {

constexpr std::uint64_t kSeed = 0x76616c6964617465;  // for all runs the same

void check_parts(double share, std::size_t held, std::size_t all,
                 std::size_t least, const char* what) {
  if (held >= least && all - held >= least) return;
  throw DataError(fmt::format(
      "[data] task.validation {} of {} training {} holds out {} and leaves {}: "
      "at least {} of each are needed",
      share, all, what, held, all - held, least));
}

std::size_t share_of(std::size_t all, double share) {
  return static_cast<std::size_t>(
      std::llround(static_cast<double>(all) * share));
}

// One pass that draws exactly `wanted` of them, each set of so many as likely
// as any other: an example is taken with the probability wanted / left.
std::vector<bool> draw(std::size_t all, double share) {
  std::size_t wanted = share_of(all, share);
  check_parts(share, wanted, all, 1, "examples");
  base::Random random(kSeed);
  std::vector<bool> held(all);
  for (std::size_t i = 0; i < all; ++i) {
    held[i] = random.uniform() * static_cast<double>(all - i) <
              static_cast<double>(wanted);
    if (held[i]) --wanted;
  }
  return held;
}

// What is kept moves down in place: a second copy of the set would be large.
void move_out(ImageSet& set, const std::vector<bool>& held, ImageSet& out) {
  out = {.channels = set.channels, .height = set.height, .width = set.width};
  const auto size = set.channels * set.height * set.width;
  auto kept = set.pixels.begin();
  auto label = set.labels.begin();
  for (std::size_t i = 0; i < held.size(); ++i) {
    const auto first =
        set.pixels.begin() + static_cast<std::ptrdiff_t>(i) * size;
    if (held[i]) {
      out.pixels.insert(out.pixels.end(), first, first + size);
      out.labels.push_back(set.labels[i]);
    } else {
      kept = std::copy(first, first + size, kept);
      *label++ = set.labels[i];
    }
  }
  set.pixels.erase(kept, set.pixels.end());
  set.labels.erase(label, set.labels.end());
}

void append(const ImageFileSet& from, std::size_t i, ImageFileSet& to) {
  to.add(from.name(i), from.labels[i]);
}

void append(const SequenceSet& from, std::size_t i, SequenceSet& to) {
  const auto towers = static_cast<std::size_t>(from.towers);
  for (std::size_t j = i * towers; j < (i + 1) * towers; ++j) {
    to.tokens.insert(to.tokens.end(), from.tokens.begin() + from.begin[j],
                     from.tokens.begin() + from.begin[j + 1]);
    to.begin.push_back(static_cast<std::int64_t>(to.tokens.size()));
  }
  to.labels.push_back(from.labels[i]);
  to.towers = from.towers;
}

void append(const ProbeSet& from, std::size_t i, ProbeSet& to) {
  to.length = from.length;
  const auto first = static_cast<std::ptrdiff_t>(i) * from.length;
  const auto last = first + from.length;
  to.tokens.insert(to.tokens.end(), from.tokens.begin() + first,
                   from.tokens.begin() + last);
  to.answers.insert(to.answers.end(), from.answers.begin() + first,
                    from.answers.begin() + last);
}

template <typename Splits>
void divide(Splits& splits, double share) {
  const std::vector<bool> held = draw(splits.train.count(), share);
  const auto all = std::exchange(splits.train, {});
  splits.validation = {};
  for (std::size_t i = 0; i < held.size(); ++i) {
    append(all, i, held[i] ? splits.validation : splits.train);
  }
}

}  // namespace

void hold_out(ImageSplits& splits, double share) {
  move_out(splits.train, draw(splits.train.count(), share), splits.validation);
}

void hold_out(ImageFileSplits& splits, double share) {
  const std::string folder = splits.train.folder;
  divide(splits, share);
  splits.train.folder = splits.validation.folder = folder;
}

void hold_out(SequenceSplits& splits, double share) { divide(splits, share); }

void hold_out(ProbeSplits& splits, double share) { divide(splits, share); }

void hold_out(TextSplits& splits, double share) {
  // A byte, and the one that follows it.
  check_parts(share, share_of(splits.train.size(), share), splits.train.size(),
              2, "bytes");
  TextSplits parts =
      split_lines(std::move(splits.train), share, "the training text");
  splits.train = std::move(parts.train);
  splits.validation = std::move(parts.test);
}

}  // namespace polyattn::data
