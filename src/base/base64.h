// Bytes as text (RFC 4648, with padding).
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace polyattn::base {

std::string base64(std::span<const std::uint8_t> bytes);

}  // namespace polyattn::base
