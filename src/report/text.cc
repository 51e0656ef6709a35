#include "report/text.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "base/json_text.h"

namespace polyattn::report {
namespace {

// U+2028 and U+2029 in UTF-8, but for the last byte, which is A8 or A9.
constexpr std::string_view kLineEnd = "\xE2\x80";

}  // namespace

std::string valid_utf8(std::string_view text) {
  // Printing replaces what is no UTF-8; reading it again gives plain text.
  return base::parse_json(base::printed(base::Json(std::string(text))))
      .get<std::string>();
}

std::string cut_text(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return valid_utf8(text);
  // Not within a character: bytes of the form 10xxxxxx continue one.
  std::size_t end = max_bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) {
    --end;
  }
  return valid_utf8(text.substr(0, end)) + "...";
}

std::string printable(std::string_view text) {
  std::string plain = valid_utf8(text);
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const auto byte = static_cast<unsigned char>(plain[i]);
    if (byte < ' ' || byte == 0x7F) plain[i] = '?';
    // U+0080 to U+009F, which some terminals heed.
    if (byte == 0xC2 && static_cast<unsigned char>(plain[i + 1]) < 0xA0) {
      plain[i] = plain[i + 1] = '?';
    }
  }
  return plain;
}

void append_number(std::string& json, double value) {
  if (std::isfinite(value)) {
    fmt::format_to(std::back_inserter(json), "{:.5g}", value);
  } else {
    json += base::printed(base::number(value));
  }
}

std::string script_safe(std::string_view json) {
  std::string safe;
  safe.reserve(json.size() + json.size() / 64);
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (json[i] == '<') {
      safe += "\\u003c";
    } else if (json.substr(i, 2) == kLineEnd && i + 2 < json.size() &&
               (json[i + 2] == '\xA8' || json[i + 2] == '\xA9')) {
      safe += json[i + 2] == '\xA8' ? "\\u2028" : "\\u2029";
      i += 2;
    } else {
      safe += json[i];
    }
  }
  return safe;
}

}  // namespace polyattn::report
