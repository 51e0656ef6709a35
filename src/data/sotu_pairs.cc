#include "data/sotu_pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "base/random.h"
#include "data/byte_tokens.h"
#include "data/cache.h"
#include "data/text.h"

namespace polyattn::data {
namespace {

// A range of passages, of one address.
struct Address {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

struct Passages {
  std::vector<std::string_view> texts;
  std::vector<Address> addresses;  // [texts.size()], of each
};

// Those of every tenth address, or of the others.
Passages passages_of(const std::vector<std::string>& addresses,
                     std::size_t length, bool tenth) {
  Passages passages;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    if ((i % 10 == 9) != tenth) continue;
    const auto first = static_cast<std::uint32_t>(passages.texts.size());
    const std::string_view address = addresses[i];
    const std::size_t count = address.size() / length;
    for (std::size_t j = 0; j < count; ++j) {
      passages.texts.push_back(address.substr(j * length, length));
      passages.addresses.push_back({first, static_cast<std::uint32_t>(count)});
    }
  }
  return passages;
}

class PairDrawer {
 public:
  PairDrawer(Passages passages, std::uint64_t seed)
      : passages_(std::move(passages)), random_(seed) {}

  SequenceSet draw(std::int64_t count) {
    SequenceSet set;
    set.towers = 2;
    std::int64_t tries = 0;
    while (std::cmp_less(set.count(), count)) {
      const auto all = static_cast<std::uint32_t>(passages_.texts.size());
      if (all < 2 || ++tries > kTries * (count + 1)) {
        refuse(set.count(), count);
      }
      const bool one_address = set.count() % 2 == 1;
      const std::uint32_t a = random_.below(all);
      const Address& address = passages_.addresses[a];
      const std::uint32_t b = one_address
                                  ? address.first + random_.below(address.count)
                                  : random_.below(all);
      const bool same = b - address.first < address.count;
      if (a == b || same != one_address || !is_new(a, b)) continue;
      append(a, set);
      append(b, set);
      set.labels.push_back(one_address ? 1 : 0);
    }
    return set;
  }

 private:
  static constexpr std::int64_t kTries = 100;

  bool is_new(std::uint64_t a, std::uint64_t b) {
    return seen_
        .insert(std::min(a, b) * passages_.texts.size() + std::max(a, b))
        .second;
  }

  void append(std::uint32_t i, SequenceSet& set) const {
    append_bytes(passages_.texts[i], set.tokens);
    set.begin.push_back(static_cast<std::int64_t>(set.tokens.size()));
  }

  [[noreturn]] void refuse(std::size_t found, std::int64_t count) const {
    throw DataError(fmt::format(
        "[sotu-pairs] {} passages gave {} different pairs, and {} are wanted: "
        "lower train_count and test_count, or shorten the passages",
        passages_.texts.size(), found, count));
  }

  Passages passages_;
  base::Random random_;
  std::unordered_set<std::uint64_t> seen_;
};

void check_text(const std::vector<std::string>& addresses) {
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    if (is_byte_text(addresses[i])) continue;
    throw DataError(fmt::format("[sotu-pairs] address {} is not UTF-8", i + 1));
  }
}

}  // namespace

SequenceSplits make_sotu_pairs(const std::vector<std::string>& addresses,
                               const SotuPairsSource& source) {
  constexpr std::int64_t kMaxCount = 1'000'000;
  for (const auto& [key, value, most] :
       {std::tuple("length", source.length, std::int64_t{1} << 20),
        std::tuple("train_count", source.train_count, kMaxCount),
        std::tuple("test_count", source.test_count, kMaxCount)}) {
    if (value >= 1 && value <= most) continue;
    throw DataError(
        fmt::format("[sotu-pairs] {} {} is not in [1, {}]", key, value, most));
  }
  check_text(addresses);
  const auto length = static_cast<std::size_t>(source.length);
  SequenceSplits splits;
  splits.vocabulary = kByteVocabulary;
  splits.class_names = {"two addresses", "one address"};
  splits.train = PairDrawer(passages_of(addresses, length, false), source.seed)
                     .draw(source.train_count);
  splits.test = PairDrawer(passages_of(addresses, length, true), source.seed)
                    .draw(source.test_count);
  return splits;
}

SequenceSplits load_sotu_pairs(const SotuPairsSource& source) {
  return make_sotu_pairs(
      read_years(source.path.empty() ? require_set("sotu") : source.path),
      source);
}

}  // namespace polyattn::data
