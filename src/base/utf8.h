// UTF-8, as far as reading a config needs it.
#pragma once

#include <cstddef>
#include <string_view>

namespace polyattn::base {

// Bytes before the first that is not well-formed (overlong forms, surrogates
// and what lies beyond U+10FFFF are not); all if there is none.
std::size_t utf8_prefix(std::string_view text);

}  // namespace polyattn::base
