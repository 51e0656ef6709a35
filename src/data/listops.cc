#include "data/listops.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/message.h"

namespace polyattn::data {
namespace {

constexpr std::array<std::string_view, kListOpsVocabulary> kNames = {
    "",  "0", "1", "2",    "3",    "4",    "5",   "6",
    "7", "8", "9", "[MIN", "[MAX", "[MED", "[SM", "]"};

bool is_digit(std::uint8_t token) {
  return token >= kListOpsDigit && token < kListOpsMin;
}

bool is_operator(std::uint8_t token) {
  return token >= kListOpsMin && token < kListOpsEnd;
}

// The values may be put into another order.
int apply(std::uint8_t op, std::span<int> values) {
  switch (op) {
    case kListOpsMin:
      return *std::min_element(values.begin(), values.end());
    case kListOpsMax:
      return *std::max_element(values.begin(), values.end());
    case kListOpsMed: {
      std::sort(values.begin(), values.end());
      const std::size_t half = values.size() / 2;
      if (values.size() % 2 == 1) return values[half];
      return (values[half - 1] + values[half]) / 2;
    }
    default: {
      int sum = 0;
      for (const int value : values) sum = (sum + value) % 10;
      return sum;
    }
  }
}

// Reads an expression from left to right, whatever its depth.
class Evaluator {
 public:
  void add(std::uint8_t token) {
    if (complete()) refuse("the expression has already ended");
    if (is_operator(token)) {
      lists_.push_back({token, values_.size()});
    } else if (is_digit(token)) {
      values_.push_back(token - kListOpsDigit);
    } else if (token == kListOpsEnd) {
      close();
    } else {
      refuse(fmt::format("there is no token {}", token));
    }
    ++position_;
  }

  int result() const {
    if (values_.empty() && lists_.empty()) {
      throw DataError("there is no expression");
    }
    if (!complete()) {
      throw DataError(
          fmt::format("{} of its lists have no end, \"]\"", lists_.size()));
    }
    return values_.front();
  }

 private:
  struct List {
    std::uint8_t op;
    std::size_t begin;  // of its values
  };

  bool complete() const { return lists_.empty() && !values_.empty(); }

  void close() {
    if (lists_.empty()) refuse("\"]\" ends no list");
    const auto [op, begin] = lists_.back();
    if (values_.size() == begin) refuse("a list without arguments ends here");
    lists_.pop_back();
    const int value = apply(op, std::span(values_).subspan(begin));
    values_.resize(begin);
    values_.push_back(value);
  }

  [[noreturn]] void refuse(std::string_view why) const {
    throw DataError(fmt::format("token {}: {}", position_ + 1, why));
  }

  std::vector<int> values_;  // of the lists that are open
  std::vector<List> lists_;
  std::size_t position_ = 0;
};

// For each operator, in their order, how many arguments it has.
std::vector<std::size_t> argument_counts(std::span<const std::uint8_t> tokens) {
  std::vector<std::size_t> counts;
  std::vector<std::size_t> open;
  for (const std::uint8_t token : tokens) {
    if (token == kListOpsEnd) open.pop_back();
    if (is_operator(token)) {
      counts.push_back(0);
      open.push_back(counts.size() - 1);
    } else if (!open.empty()) {
      ++counts[open.back()];
    }
  }
  return counts;
}

// 0 if the word is none. Files hold hundreds of millions of words, nearly all
// of one letter.
std::uint8_t token_of(std::string_view word) {
  if (word.size() == 1) {
    if (word[0] >= '0' && word[0] <= '9') {
      return static_cast<std::uint8_t>(kListOpsDigit + (word[0] - '0'));
    }
    return word[0] == ']' ? kListOpsEnd : 0;
  }
  for (std::uint8_t token = kListOpsMin; token < kListOpsEnd; ++token) {
    if (word == kNames[token]) return token;
  }
  return 0;
}

void append_words(std::string_view text, std::vector<std::uint8_t>& tokens) {
  for (std::size_t begin = 0; begin <= text.size();) {
    std::size_t end = begin;
    while (end < text.size() && text[end] != ' ') ++end;
    const std::string_view word = text.substr(begin, end - begin);
    if (const std::uint8_t token = token_of(word); token != 0) {
      tokens.push_back(token);
    } else if (word != "(" && word != ")") {
      throw DataError(
          fmt::format("column {}: {} is no token of ListOps (0 to 9, [MIN, "
                      "[MAX, [MED, [SM, ], parentheses)",
                      begin + 1, base::in_quotes(word)));
    }
    begin = end + 1;
  }
}

// The text of an expression that is known to be right.
std::string text_of(std::span<const std::uint8_t> tokens) {
  const std::vector<std::size_t> counts = argument_counts(tokens);
  auto arguments = counts.begin();
  std::string text;
  text.reserve(8 * tokens.size());
  std::size_t depth = 0;
  for (const std::uint8_t token : tokens) {
    if (!text.empty()) text += ' ';
    if (is_operator(token)) {
      for (std::size_t i = 0; i <= *arguments; ++i) text += "( ";
      ++arguments;
      ++depth;
    }
    text += kNames[token];
    if (is_operator(token)) continue;
    if (token == kListOpsEnd) {
      text += " )";
      --depth;
    }
    if (depth > 0) text += " )";
  }
  return text;
}

void check_parentheses(std::string_view text,
                       std::span<const std::uint8_t> tokens) {
  if (text.find_first_of("()") == std::string_view::npos) return;
  const std::string expected = text_of(tokens);
  if (text == expected) return;
  const auto [here, there] =
      std::mismatch(text.begin(), text.end(), expected.begin(), expected.end());
  throw DataError(
      fmt::format("column {}: the parentheses are not those of the expression, "
                  "which are {} from here",
                  here - text.begin() + 1,
                  base::in_quotes(std::string(there, expected.end()))));
}

}  // namespace

std::int32_t listops_value(std::span<const std::uint8_t> tokens) {
  Evaluator evaluator;
  for (const std::uint8_t token : tokens) evaluator.add(token);
  return evaluator.result();
}

std::string listops_text(std::span<const std::uint8_t> tokens) {
  listops_value(tokens);
  return text_of(tokens);
}

std::int32_t parse_listops(std::string_view text,
                           std::vector<std::uint8_t>& tokens) {
  const std::size_t begin = tokens.size();
  try {
    append_words(text, tokens);
    const auto added = std::span(tokens).subspan(begin);
    const std::int32_t value = listops_value(added);
    check_parentheses(text, added);
    return value;
  } catch (const DataError&) {
    tokens.resize(begin);
    throw;
  }
}

SequenceSplits empty_listops() {
  SequenceSplits splits;
  splits.vocabulary = kListOpsVocabulary;
  for (int digit = 0; digit < 10; ++digit) {
    splits.class_names.push_back(std::to_string(digit));
  }
  return splits;
}

}  // namespace polyattn::data
