// Safetensors files made by hand, for tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "polyattn/io/safetensors.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"

namespace polyattn::io::test {

using polyattn::test::message_of;
using polyattn::test::read_text;
using polyattn::test::TemporaryFolder;
using polyattn::test::write_text;

// Eight bytes, little-endian.
inline std::string length_bytes(std::uint64_t length) {
  std::string text;
  for (int i = 0; i < 8; ++i) text += static_cast<char>(length >> (8 * i));
  return text;
}

inline std::string braces(std::string_view inside) {
  return std::string("{").append(inside).append("}");
}

inline std::string file_of(std::string_view header, std::string_view data) {
  return length_bytes(header.size()).append(header).append(data);
}

inline std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

inline std::string as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The message that parsing this file ends with; empty if it is accepted.
inline std::string refusal(std::string_view file) {
  return message_of<SafetensorsError>(
      [&] { SafetensorsFile::parse(as_bytes(file), "x"); });
}

}  // namespace polyattn::io::test
