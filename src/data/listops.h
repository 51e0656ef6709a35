// ListOps, a task of Long Range Arena: lists of digits, each with an operator
// and nested in each other, of which the value is to be told. It is one of ten
// digits.
//
//   text    ( ( ( [MAX 4 ) 3 ) ] )
//   tokens  [MAX 4 3 ]
//   value   4
//
// The text puts a pair of parentheses around every step of the application.
// They follow from the tokens, and models do not see them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/sets.h"

namespace polyattn::data {

// 0 is padding and no token; then the digits 0 to 9, the operators, the end of
// a list.
enum ListOpsToken : std::uint8_t {
  kListOpsDigit = 1,
  kListOpsMin = 11,
  kListOpsMax = 12,
  kListOpsMed = 13,  // the integer part of the median
  kListOpsSum = 14,  // modulo 10
  kListOpsEnd = 15,
};

inline constexpr std::int64_t kListOpsVocabulary = 16;

// No model would take more; a limit keeps wrong numbers from filling memory.
inline constexpr std::int64_t kListOpsMaxLength = 1 << 20;

// The value of an expression. Throws DataError, without the name of a file, if
// the tokens are none. Any depth, and any number of arguments but none.
std::int32_t listops_value(std::span<const std::uint8_t> tokens);

// The text of an expression, with parentheses.
std::string listops_text(std::span<const std::uint8_t> tokens);

// Appends the tokens of a text, with the parentheses that listops_text writes
// or without any, and returns its value. Throws DataError, without the name of
// a file; `tokens` is as before then.
std::int32_t parse_listops(std::string_view text,
                           std::vector<std::uint8_t>& tokens);

// An empty set of ListOps: vocabulary and names.
SequenceSplits empty_listops();

}  // namespace polyattn::data
