// Any bytes either parse as a file of reviews or throw DataError, never
// anything else; what parses holds together, and written again it parses to the
// same.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "data/imdb.h"

namespace {

using polyattn::data::DataError;
using polyattn::data::parse_imdb_json;
using polyattn::data::SequenceSet;
using polyattn::data::SequenceSplits;

// Longer than any input: nothing is cut.
constexpr std::int64_t kNoLimit = 1 << 20;

void require(bool condition, const char* message) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", message);
  std::abort();
}

// Adds the reviews to the array.
void check_set(const SequenceSet& set, nlohmann::json& reviews) {
  require(set.begin.size() == set.count() + 1, "begin has another length");
  require(set.begin.front() == 0, "the first does not begin at 0");
  require(set.begin.back() == static_cast<std::int64_t>(set.tokens.size()),
          "the last does not end at the end");
  require(set.count() > 0, "an empty set");
  for (std::size_t i = 0; i < set.count(); ++i) {
    require(set.begin[i] < set.begin[i + 1], "an empty review");
    require(set.labels[i] == 0 || set.labels[i] == 1, "label out of range");
    std::string text(set.tokens.begin() + set.begin[i],
                     set.tokens.begin() + set.begin[i + 1]);
    for (char& byte : text) {
      require(byte != 0, "a token that is padding");
      --byte;
    }
    reviews.push_back({{"t", text}, {"s", set.labels[i]}});
  }
}

void check_same(const SequenceSet& a, const SequenceSet& b) {
  require(a.tokens == b.tokens, "tokens differ");
  require(a.begin == b.begin, "begin differs");
  require(a.labels == b.labels, "labels differ");
}

void check_error(const DataError& error) {
  const std::string_view what = error.what();
  require(what.starts_with("cannot read x: "), "message without source");
  require(what.size() < 1000, "a message of any length");
  require(std::all_of(what.begin(), what.end(),
                      [](char c) { return c >= ' ' && c <= '~'; }),
          "a message that is not plain text");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  if (size == 0) return 0;
  // A copy, so that the sanitizer sees what is read beyond its end.
  const std::string json(data + 1, data + size);
  try {
    const SequenceSplits splits = parse_imdb_json(json, "x", kNoLimit);
    nlohmann::json reviews = nlohmann::json::array();
    check_set(splits.train, reviews);
    check_set(splits.test, reviews);
    const SequenceSplits again = parse_imdb_json(reviews.dump(), "x", kNoLimit);
    check_same(splits.train, again.train);
    check_same(splits.test, again.test);
    // The first byte says where reviews are cut.
    const SequenceSplits cut = parse_imdb_json(json, "x", data[0] + 1);
    require(cut.train.labels == splits.train.labels, "cutting moved reviews");
  } catch (const DataError& error) {
    check_error(error);
  }
  return 0;
}
