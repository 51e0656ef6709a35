#include "data/probes.h"

#include <fmt/format.h>

#include <numeric>
#include <utility>
#include <vector>

#include "base/random.h"

namespace polyattn::data {
namespace {

constexpr std::int64_t kFirstKey = 1 + kProbeNoise;
constexpr std::int64_t kFirstValue = kFirstKey + kProbeKeys;
constexpr std::int64_t kBar = 1 + kProbeLetters;

std::uint8_t draw(base::Random& random, std::int64_t first,
                  std::int64_t count) {
  return static_cast<std::uint8_t>(
      first + random.below(static_cast<std::uint32_t>(count)));
}

// Appends tokens, and what must follow each of them.
class Writer {
 public:
  explicit Writer(ProbeSet& set) : set_(set) {}

  void add(std::uint8_t token, std::uint8_t answer = 0) {
    set_.tokens.push_back(token);
    set_.answers.push_back(answer);
  }

 private:
  ProbeSet& set_;
};

// `count` of `all`, in random order.
std::vector<std::uint8_t> draw_some(base::Random& random, std::int64_t count,
                                    std::int64_t all) {
  std::vector<std::uint8_t> some(static_cast<std::size_t>(all));
  std::iota(some.begin(), some.end(), std::uint8_t{0});
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const std::uint32_t left = static_cast<std::uint32_t>(some.size() - i);
    std::swap(some[i], some[i + random.below(left)]);
  }
  some.resize(static_cast<std::size_t>(count));
  return some;
}

void add_recall(const ProbeSource& source, base::Random& random,
                ProbeSet& set) {
  Writer writer(set);
  const std::vector<std::uint8_t> keys =
      draw_some(random, source.pairs, kProbeKeys);
  std::vector<std::uint8_t> values;
  for (const std::uint8_t key : keys) {
    values.push_back(draw(random, kFirstValue, kProbeValues));
    writer.add(static_cast<std::uint8_t>(kFirstKey + key));
    writer.add(values.back());
  }
  const std::vector<std::uint8_t> order =
      draw_some(random, source.pairs, source.pairs);
  std::size_t asked = 0;
  for (std::int64_t left = (source.length - 2 * source.pairs) / 2; left > 0;
       --left) {
    // Each set of as many slots is as likely as any other.
    const auto wanted = static_cast<double>(order.size() - asked);
    if (random.uniform() * static_cast<double>(left) < wanted) {
      const std::uint8_t pair = order[asked++];
      writer.add(static_cast<std::uint8_t>(kFirstKey + keys[pair]),
                 values[pair]);
      writer.add(values[pair]);
    } else {
      writer.add(draw(random, 1, kProbeNoise));
      writer.add(draw(random, 1, kProbeNoise));
    }
  }
}

void add_copy(const ProbeSource& source, base::Random& random, ProbeSet& set) {
  Writer writer(set);
  const auto half = static_cast<std::size_t>(source.length / 2);
  std::vector<std::uint8_t> letters(half);
  for (std::uint8_t& letter : letters) {
    letter = draw(random, 1, kProbeLetters);
    writer.add(letter);
  }
  for (std::size_t i = 0; i < half; ++i) {
    writer.add(i == 0 ? static_cast<std::uint8_t>(kBar) : letters[i - 1],
               letters[i]);
  }
}

[[noreturn]] void refuse(const ProbeSource& source, const std::string& why) {
  throw DataError(
      fmt::format("[{}] a length of {} {}", source.name, source.length, why));
}

void check(const ProbeSource& source) {
  if (source.name != "recall" && source.name != "copy") {
    throw DataError(fmt::format(
        "[data] there is no probe '{}': it is recall or copy", source.name));
  }
  if (source.length < 2 || source.length % 2 != 0) {
    refuse(source, "is not even, or below 2");
  }
  if (source.name != "recall") return;
  if (source.pairs < 1 || source.pairs > kProbeKeys) {
    throw DataError(
        fmt::format("[recall] {} pairs are not from 1 to {}, the "
                    "keys that there are",
                    source.pairs, kProbeKeys));
  }
  if (4 * source.pairs > source.length) {
    refuse(source, fmt::format("has no room for {} pairs and as many "
                               "questions, which take {}",
                               source.pairs, 4 * source.pairs));
  }
}

}  // namespace

ProbeSet make_probes(const ProbeSource& source, std::int64_t count,
                     std::uint64_t seed) {
  check(source);
  ProbeSet set{.length = source.length};
  const auto size = static_cast<std::size_t>(count * source.length);
  set.tokens.reserve(size);
  set.answers.reserve(size);
  base::Random random(base::mix_bits(seed) ^
                      static_cast<std::uint64_t>(source.length));
  for (std::int64_t i = 0; i < count; ++i) {
    if (source.name == "recall") {
      add_recall(source, random, set);
    } else {
      add_copy(source, random, set);
    }
  }
  return set;
}

ProbeSplits load_probes(const ProbeSource& source) {
  constexpr std::uint64_t kTest = 1, kTrain = 2;
  ProbeSplits splits;
  splits.vocabulary =
      source.name == "recall" ? kFirstValue + kProbeValues : kBar + 1;
  splits.test = make_probes(source, source.test_count, kTest);
  splits.train = make_probes(source, source.train_count, kTrain);
  return splits;
}

std::string probe_token(std::string_view name, std::int64_t token) {
  if (name == "copy") {
    return token == kBar ? "|"
                         : std::string(1, static_cast<char>('a' + token - 1));
  }
  if (token < kFirstKey) return ".";
  if (token < kFirstValue) return fmt::format("k{}", token - kFirstKey);
  return fmt::format("v{}", token - kFirstValue);
}

}  // namespace polyattn::data
