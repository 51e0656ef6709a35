#include "data/listops_generator.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/random.h"
#include "data/listops.h"

namespace polyattn::data {
namespace {

constexpr int kMaxDepth = 10;
constexpr std::uint32_t kMinArguments = 2;
constexpr std::uint32_t kMaxArguments = 10;

// Draws expressions until they are as many as wanted.
class Generator {
 public:
  explicit Generator(const ListOpsSource& source)
      : source_(source), random_(source.seed) {}

  void fill(SequenceSet& set, std::int64_t count) {
    while (std::cmp_less(set.count(), count)) {
      tokens_.clear();
      ++tries_;
      if (grow(1) &&
          std::cmp_greater_equal(tokens_.size(), source_.min_length) &&
          seen_.insert(base::hash_bytes(tokens_)).second) {
        append(set);
      }
      check_budget();
    }
  }

 private:
  // A node and all below it. False, and half of it, if it becomes too long.
  bool grow(int depth) {
    if (std::cmp_greater_equal(tokens_.size(), source_.max_length))
      return false;
    ++drawn_;
    if (depth == kMaxDepth || random_.next() >> 62 != 0) {
      tokens_.push_back(
          static_cast<std::uint8_t>(kListOpsDigit + random_.below(10)));
      return true;
    }
    tokens_.push_back(
        static_cast<std::uint8_t>(kListOpsMin + random_.below(4)));
    std::uint32_t arguments =
        kMinArguments + random_.below(kMaxArguments - kMinArguments + 1);
    for (; arguments > 0; --arguments) {
      if (!grow(depth + 1)) return false;
    }
    tokens_.push_back(kListOpsEnd);
    return std::cmp_less_equal(tokens_.size(), source_.max_length);
  }

  void append(SequenceSet& set) {
    set.tokens.insert(set.tokens.end(), tokens_.begin(), tokens_.end());
    set.begin.push_back(static_cast<std::int64_t>(set.tokens.size()));
    set.labels.push_back(listops_value(tokens_));
  }

  // About half a second of work before the first, and then for each that was
  // found dozens of times the work that usual lengths take.
  void check_budget() const {
    constexpr std::int64_t kGrace = std::int64_t{1} << 25;
    const auto found = static_cast<std::int64_t>(seen_.size());
    if (drawn_ <= kGrace + 64 * source_.max_length * found) return;
    throw DataError(fmt::format(
        "[listops] {} tries gave {} different expressions of {} to {} tokens, "
        "and {} are wanted: widen min_length and max_length, or lower "
        "train_count and test_count",
        tries_, found, source_.min_length, source_.max_length,
        source_.train_count + source_.test_count));
  }

  const ListOpsSource& source_;
  base::Random random_;
  std::vector<std::uint8_t> tokens_;
  // Hashes, not expressions: if two have the same, one is thrown away without
  // need, which does no harm.
  std::unordered_set<std::uint64_t> seen_;
  std::int64_t tries_ = 0;
  std::int64_t drawn_ = 0;  // nodes
};

void check_range(const char* key, std::int64_t value, std::int64_t least,
                 std::int64_t most) {
  if (value >= least && value <= most) return;
  throw DataError(fmt::format("[listops] {} {} is not in [{}, {}]", key, value,
                              least, most));
}

}  // namespace

SequenceSplits generate_listops(const ListOpsSource& source) {
  constexpr std::int64_t kMaxCount = 100'000'000;
  check_range("min_length", source.min_length, 1, kListOpsMaxLength);
  check_range("max_length", source.max_length, source.min_length,
              kListOpsMaxLength);
  check_range("train_count", source.train_count, 1, kMaxCount);
  check_range("test_count", source.test_count, 1, kMaxCount);
  Generator generator(source);
  SequenceSplits splits = empty_listops();
  generator.fill(splits.test, source.test_count);
  generator.fill(splits.train, source.train_count);
  return splits;
}

}  // namespace polyattn::data
