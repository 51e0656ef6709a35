// What the tests of texts and sequences have in common.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/sets.h"
#include "data/support.h"

namespace polyattn::data::test {

// While it lives, its folder is the cache.
class TestCache : public TemporaryFolder {
 public:
  TestCache() : variable_("POLYATTN_DATA", path().string()) {}

 private:
  TestVariable variable_;
};

inline std::vector<std::uint8_t> sequence(const SequenceSet& set,
                                          std::size_t i) {
  return {set.tokens.begin() + set.begin[i],
          set.tokens.begin() + set.begin[i + 1]};
}

inline void expect_equal(const SequenceSet& a, const SequenceSet& b) {
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_EQ(a.begin, b.begin);
  EXPECT_EQ(a.labels, b.labels);
}

}  // namespace polyattn::data::test
