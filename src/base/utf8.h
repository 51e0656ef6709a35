// UTF-8, as far as reading a config needs it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace polyattn::base {

// Bytes before the first that is not well-formed (overlong forms, surrogates
// and what lies beyond U+10FFFF are not); all if there is none.
std::size_t utf8_prefix(std::string_view text);

// Nothing for surrogates and what lies beyond U+10FFFF.
std::optional<std::string> utf8_of(std::uint32_t code_point);

}  // namespace polyattn::base
