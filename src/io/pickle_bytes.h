// The bytes of a pickle, read from the beginning to the end, and what they
// mean.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/message.h"
#include "polyattn/io/torch_file.h"

namespace polyattn::io {

// As pickletools has them.
enum PickleOpcode : unsigned char {
  kMark = '(',
  kStop = '.',
  kBinFloat = 'G',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kPushNone = 'N',
  kBinPersId = 'Q',
  kReduce = 'R',
  kBinUnicode = 'X',
  kEmptyList = ']',
  kAppend = 'a',
  kBuild = 'b',
  kPushGlobal = 'c',
  kAppends = 'e',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kMakeTuple = 't',
  kSetItems = 'u',
  kEmptyDict = '}',
  kEmptyTuple = ')',
  kProto = 0x80,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kShortBinUnicode = 0x8c,
  kStackGlobal = 0x93,
  kMemoize = 0x94,
  kFrame = 0x95,
};

// Throws TorchFileError at the end.
class PickleBytes {
 public:
  PickleBytes(std::span<const std::byte> bytes, std::string_view source)
      : bytes_(bytes), source_(source) {}

  [[noreturn]] void refuse(std::string_view reason) const {
    throw TorchFileError(source_,
                         base::concat("the pickle of its names: ", reason));
  }

  std::span<const std::byte> take(std::uint64_t count) {
    if (count > bytes_.size() - at_) refuse("it is cut short");
    const auto part = bytes_.subspan(at_, count);
    at_ += count;
    return part;
  }

  std::uint64_t number(std::size_t size) {
    const auto digits = take(size);
    std::uint64_t value = 0;
    for (std::size_t i = size; i-- > 0;) {
      value = value << 8 | std::to_integer<std::uint64_t>(digits[i]);
    }
    return value;
  }

  // In two's complement, of up to eight bytes.
  std::int64_t signed_number(std::size_t size) {
    if (size > 8) refuse("an integer has more than 64 bits");
    const std::uint64_t value = number(size);
    if (size == 0 || size == 8) return static_cast<std::int64_t>(value);
    const std::uint64_t sign = std::uint64_t{1} << (8 * size - 1);
    return static_cast<std::int64_t>(value ^ sign) -
           static_cast<std::int64_t>(sign);
  }

  std::string text(std::uint64_t size) {
    const auto letters = take(size);
    return {reinterpret_cast<const char*>(letters.data()), letters.size()};
  }

  std::string line() {
    const auto rest = bytes_.subspan(at_);
    const auto end = std::find(rest.begin(), rest.end(), std::byte{'\n'});
    std::string line = text(static_cast<std::uint64_t>(end - rest.begin()));
    take(1);
    return line;
  }

  // How many were read.
  std::uint64_t at() const { return at_; }
  std::string_view source() const { return source_; }

 private:
  std::span<const std::byte> bytes_;
  std::string_view source_;
  std::uint64_t at_ = 0;
};

}  // namespace polyattn::io
