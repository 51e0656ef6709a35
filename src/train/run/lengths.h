// RUN/lengths.json: how good a language model is at lengths other than that of
// its training, and at each place of them.
//
//   weights   last, or best
//   split     test, or validation
//   context   tokens of an example of the training
//   lengths   [{length, count, loss, accuracy or bits_per_byte, places: [{to,
//             count, loss, ...}]}]: examples of `length` tokens, the targets in
//             them that count, and the figures over all of these; then those of
//             targets before which at most `to` tokens were read, and more than
//             in the place before
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_text.h"
#include "train/run/records.h"

namespace polyattn::run {

// Beyond it nobody means it, and products of sizes stay within 64 bits.
inline constexpr std::int64_t kLongestLength = 1 << 20;

struct LengthPlace {
  std::int64_t to = 0;
  std::int64_t count = 0;
  Evaluation evaluation = {};

  bool operator==(const LengthPlace&) const = default;
};

struct LengthResult {
  std::int64_t length = 0;
  std::int64_t count = 0;
  Evaluation evaluation = {};
  std::vector<LengthPlace> places = {};  // those that have targets

  bool operator==(const LengthResult&) const = default;
};

struct Lengths {
  std::string weights = {};
  std::string split = {};
  std::int64_t context = 0;
  std::vector<LengthResult> lengths = {};  // in their order

  bool operator==(const Lengths&) const = default;
};

// "256,1024,4096": in their order, each once. Throws std::invalid_argument that
// says what is wrong with which part.
std::vector<std::int64_t> parse_length_list(std::string_view text);

base::Json lengths_json(const Lengths& lengths);
// The inverse. Members that are not known are left out. Throws base::JsonError,
// of one line.
Lengths parse_lengths(std::string_view text);

// "bits per byte", or "accuracy in %".
const char* lengths_figure(const Lengths& lengths);

// For a terminal: a column for each length, a row for each place, and the
// figure over all places last.
std::string lengths_table(const Lengths& lengths);

// Throws std::system_error.
void write_lengths(const std::filesystem::path& folder, const Lengths& lengths);

}  // namespace polyattn::run
