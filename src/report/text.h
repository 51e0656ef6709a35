// Pieces of JSON text: documents are put together from parts that are kept, and
// long rows of numbers are never held as JSON values.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace polyattn::report {

// Bytes that are no UTF-8 become U+FFFD.
std::string valid_utf8(std::string_view text);

// The text, or its start and three dots if it has more bytes than that; always
// UTF-8.
std::string cut_text(std::string_view text, std::size_t max_bytes);

// For a terminal: what moves its cursor, or worse, becomes a question mark.
// Names of folders may have anything in them.
std::string printable(std::string_view text);

// With five significant digits, which is more than a curve shows; the strings
// of base::number() for what is not finite.
void append_number(std::string& json, double value);

// JSON text for a script element, which nothing in it can end: `<` only stands
// within strings, where \u003c means the same, and so it is with the line ends
// of Unicode.
std::string script_safe(std::string_view json);

}  // namespace polyattn::report
