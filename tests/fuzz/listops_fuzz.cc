// Any text either parses as an expression of ListOps or throws DataError, never
// anything else; what parses has the value that a plain recursive evaluation
// gives, and its own text parses to the same. The same for files of
// expressions.
//
// The first byte of the input, modulo 3, says what the others are:
//   0  words of the language, one a byte: bytes at random would never make an
//      expression
//   1  the text of an expression
//   2  a file
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/listops.h"
#include "data/listops_file.h"

namespace {

using polyattn::data::DataError;
using polyattn::data::kListOpsEnd;
using polyattn::data::kListOpsMax;
using polyattn::data::kListOpsMed;
using polyattn::data::kListOpsMin;
using polyattn::data::kListOpsSum;
using polyattn::data::listops_text;
using polyattn::data::listops_value;
using polyattn::data::parse_listops;
using polyattn::data::parse_listops_file;
using polyattn::data::SequenceSet;
using Tokens = std::span<const std::uint8_t>;

void require(bool condition, const char* message) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", message);
  std::abort();
}

int value_of_list(std::uint8_t op, std::vector<int> values) {
  std::sort(values.begin(), values.end());
  if (op == kListOpsMin) return values.front();
  if (op == kListOpsMax) return values.back();
  const std::size_t n = values.size();
  if (op == kListOpsMed) return (values[(n - 1) / 2] + values[n / 2]) / 2;
  int sum = 0;
  for (const int value : values) sum += value;
  return sum % 10;
}

// Takes an expression off the tokens. Nothing if there is none.
std::optional<int> evaluate(Tokens& tokens) {
  if (tokens.empty()) return std::nullopt;
  const std::uint8_t first = tokens.front();
  tokens = tokens.subspan(1);
  if (first >= 1 && first <= 10) return first - 1;
  if (first < kListOpsMin || first > kListOpsSum) return std::nullopt;
  std::vector<int> values;
  while (!tokens.empty() && tokens.front() != kListOpsEnd) {
    const std::optional<int> value = evaluate(tokens);
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  if (tokens.empty() || values.empty()) return std::nullopt;
  tokens = tokens.subspan(1);
  return value_of_list(first, values);
}

std::optional<int> evaluate_all(Tokens tokens) {
  const std::optional<int> value = evaluate(tokens);
  return tokens.empty() ? value : std::nullopt;
}

void check_error(const DataError& error) {
  const std::string_view what = error.what();
  require(what.size() < 2000, "a message of any length");
  require(std::all_of(what.begin(), what.end(),
                      [](char c) { return c >= ' ' && c <= '~'; }),
          "a message that is not plain text");
}

void check_tokens(Tokens tokens) {
  const std::optional<int> expected = evaluate_all(tokens);
  try {
    require(listops_value(tokens) == expected, "another value");
    std::vector<std::uint8_t> again;
    require(parse_listops(listops_text(tokens), again) == expected,
            "the text has another value");
    require(
        std::equal(tokens.begin(), tokens.end(), again.begin(), again.end()),
        "the text has other tokens");
  } catch (const DataError& error) {
    check_error(error);
    require(!expected, error.what());
  }
}

void check_text(const std::string& text) {
  std::vector<std::uint8_t> tokens = {7};
  try {
    const std::int32_t value = parse_listops(text, tokens);
    require(tokens[0] == 7, "what was there is not there");
    require(evaluate_all(Tokens(tokens).subspan(1)) == value, "another value");
  } catch (const DataError& error) {
    check_error(error);
    require(tokens.size() == 1, "half of the tokens were added");
  }
}

void check_file(const std::string& text) {
  constexpr std::int64_t kMaxLength = 20;
  try {
    const SequenceSet set = parse_listops_file(text, "x", kMaxLength);
    require(set.begin.size() == set.count() + 1, "begin has another length");
    for (std::size_t i = 0; i < set.count(); ++i) {
      const auto begin = static_cast<std::size_t>(set.begin[i]);
      const auto size = static_cast<std::size_t>(set.begin[i + 1]) - begin;
      require(size >= 1 && size <= kMaxLength, "length out of range");
      require(evaluate_all(Tokens(set.tokens).subspan(begin, size)) ==
                  set.labels[i],
              "another value");
    }
  } catch (const DataError& error) {
    check_error(error);
    require(std::string_view(error.what()).starts_with("cannot read x: "),
            "message without source");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  if (size == 0) return 0;
  // Copies, so that the sanitizer sees what is read beyond their ends.
  if (data[0] % 3 == 0) {
    std::vector<std::uint8_t> tokens(data + 1, data + size);
    // 16 is no token. Ends as often as operators, or nothing would end.
    for (std::uint8_t& token : tokens) {
      token = token < 250 ? std::min<std::uint8_t>(token % 19, 15) : 16;
    }
    check_tokens(tokens);
  } else if (data[0] % 3 == 1) {
    check_text(std::string(data + 1, data + size));
  } else {
    check_file("Source\tTarget\n" + std::string(data + 1, data + size));
  }
  return 0;
}
