#include "data/imdb.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/message.h"
#include "base/random.h"
#include "data/byte_tokens.h"
#include "data/cache.h"
#include "data/file.h"
#include "data/load.h"

namespace polyattn::data {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::span<const std::uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

// Reviews in any order, to be made into a set.
class Reviews {
 public:
  explicit Reviews(std::int64_t max_length) : max_length_(max_length) {}

  // Text that is not empty and has no byte 255.
  void add(std::string_view text, std::uint64_t hash, std::int32_t label) {
    const std::size_t begin = pool_.size();
    pool_ += text.substr(0, static_cast<std::size_t>(max_length_));
    reviews_.push_back({hash, begin, pool_.size(), label});
  }

  SequenceSet take() {
    std::stable_sort(
        reviews_.begin(), reviews_.end(),
        [](const Review& a, const Review& b) { return a.hash < b.hash; });
    SequenceSet set;
    set.tokens.reserve(pool_.size());
    const std::string_view pool = pool_;
    for (const Review& review : reviews_) {
      append_bytes(pool.substr(review.begin, review.end - review.begin),
                   set.tokens);
      set.begin.push_back(static_cast<std::int64_t>(set.tokens.size()));
      set.labels.push_back(review.label);
    }
    return set;
  }

 private:
  struct Review {
    std::uint64_t hash;
    std::size_t begin;  // within pool_
    std::size_t end;
    std::int32_t label;
  };

  std::int64_t max_length_;
  std::string pool_;
  std::vector<Review> reviews_;
};

SequenceSplits splits_of(Reviews& train, Reviews& test,
                         std::string_view source) {
  SequenceSplits splits{
      train.take(), test.take(), kByteVocabulary, {"negative", "positive"}};
  for (const auto& [set, name] : {std::pair(&splits.train, "training"),
                                  std::pair(&splits.test, "testing")}) {
    if (set->count() == 0) {
      throw DataError(
          fmt::format("cannot read {}: it has no review for {}", source, name));
    }
  }
  return splits;
}

// Listens to the parser: an array of objects with "t" and "s", and nothing
// else. Every function returns whether to go on. Names are those of
// nlohmann::json.
class JsonReviews : public Json::json_sax_t {
 public:
  explicit JsonReviews(std::int64_t max_length)
      : train_(max_length), test_(max_length) {}

  bool start_array(std::size_t /*size*/) override {
    if (began_) return fail("an array in the place of a review or a value");
    began_ = true;
    return true;
  }

  bool start_object(std::size_t /*size*/) override {
    if (!began_) return fail("an object in the place of an array of reviews");
    if (in_review_) return fail("an object in the place of a value");
    in_review_ = true;
    text_.reset();
    label_.reset();
    return true;
  }

  bool key(Json::string_t& name) override {
    if (name != "t" && name != "s") {
      return fail(fmt::format("there is a key {} beside \"t\" and \"s\"",
                              base::in_quotes(name)));
    }
    key_ = name[0];
    return true;
  }

  bool string(Json::string_t& value) override {
    if (!in_review_ || key_ != 't' || text_)
      return fail("a string out of place");
    if (value.empty()) return fail("its text is empty");
    text_ = std::move(value);
    return true;
  }

  bool number_unsigned(Json::number_unsigned_t value) override {
    if (!in_review_ || key_ != 's' || label_)
      return fail("a number out of place");
    if (value > 1) return fail(fmt::format("\"s\" is {}, not 0 or 1", value));
    label_ = static_cast<std::int32_t>(value);
    return true;
  }

  bool end_object() override {
    if (!text_ || !label_) return fail("\"t\" or \"s\" is missing");
    const std::uint64_t hash = base::hash_bytes(bytes_of(*text_));
    if (seen_.insert(hash).second) {
      (hash >> 63 == 0 ? train_ : test_).add(*text_, hash, *label_);
    }
    in_review_ = false;
    ++count_;
    return true;
  }

  bool end_array() override { return true; }
  bool null() override { return fail("null in the place of a value"); }
  bool boolean(bool /*value*/) override {
    return fail("a boolean in the place of a value");
  }
  bool number_integer(Json::number_integer_t value) override {
    return fail(fmt::format("\"s\" is {}, not 0 or 1", value));
  }
  bool number_float(Json::number_float_t /*value*/,
                    const Json::string_t& text) override {
    return fail(fmt::format("the number {} in the place of 0 or 1",
                            base::in_quotes(text)));
  }
  bool binary(Json::binary_t& /*value*/) override {
    return fail("binary data in the place of a value");
  }

  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const Json::exception& /*error*/) override {
    return fail(fmt::format("byte {}: this is not JSON", position));
  }

  const std::string& problem() const { return problem_; }
  Reviews& train() { return train_; }
  Reviews& test() { return test_; }

 private:
  bool fail(const std::string& why) {
    problem_ = fmt::format("review {}: {}", count_ + 1, why);
    return false;
  }

  Reviews train_, test_;
  std::unordered_set<std::uint64_t> seen_;
  bool began_ = false;
  bool in_review_ = false;
  char key_ = 0;
  std::optional<std::string> text_;
  std::optional<std::int32_t> label_;
  std::int64_t count_ = 0;
  std::string problem_;
};

void read_class(const fs::path& folder, std::int32_t label, Reviews& reviews) {
  // The longest that is known has 14 KB.
  constexpr std::uint64_t kMaxReviewBytes = 1 << 24;
  for (const std::string& name : names_in(folder)) {
    if (!name.ends_with(".txt")) continue;
    const std::string text = read_text(folder / name, kMaxReviewBytes);
    if (text.empty() || !is_byte_text(text)) {
      throw DataError(fmt::format(
          "cannot read {}: {}", (folder / name).string(),
          text.empty() ? "the review is empty" : "it is not UTF-8"));
    }
    reviews.add(text, base::hash_bytes(bytes_of(text)), label);
  }
}

}  // namespace

SequenceSplits parse_imdb_json(std::string_view json, std::string_view source,
                               std::int64_t max_length) {
  JsonReviews reviews(max_length);
  if (!Json::sax_parse(json.begin(), json.end(), &reviews)) {
    throw DataError(
        fmt::format("cannot read {}: {}; reviews are an array of objects "
                    "{{\"t\": text, \"s\": 0 or 1}}",
                    source, reviews.problem()));
  }
  return splits_of(reviews.train(), reviews.test(), source);
}

SequenceSplits read_imdb_folder(const fs::path& folder,
                                std::int64_t max_length) {
  Reviews train(max_length), test(max_length);
  for (const auto& [name, reviews] :
       {std::pair("train", &train), std::pair("test", &test)}) {
    read_class(folder / name / "neg", 0, *reviews);
    read_class(folder / name / "pos", 1, *reviews);
  }
  return splits_of(train, test, folder.string());
}

SequenceSplits load_imdb(const ImdbSource& source) {
  if (source.max_length < 1) {
    throw DataError(fmt::format("[imdb] max_length {} < 1", source.max_length));
  }
  fs::path path = source.path;
  if (path.empty()) path = require_set("imdb") / "reviews.json";
  std::error_code error;
  if (fs::is_directory(path, error))
    return read_imdb_folder(path, source.max_length);
  return parse_imdb_json(read_text(path), path.string(), source.max_length);
}

}  // namespace polyattn::data
