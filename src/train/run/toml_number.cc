// Values of TOML that stand without quotes.
#include <fmt/format.h>

#include <charconv>
#include <limits>

#include "base/message.h"
#include "train/run/toml_scanner.h"

namespace polyattn::run {
namespace {

[[noreturn]] void refuse(std::string_view token, const char* why) {
  throw std::invalid_argument(
      fmt::format("{} {}", base::in_quotes(token), why));
}

bool is_digit(char c, int base) {
  const int value = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : 99;
  return value < base;
}

// Takes digits off the front of `rest`, with single underscores between them,
// and adds them to `digits`. False if there are none.
bool take_digits(std::string_view& rest, std::string& digits, int base = 10) {
  std::size_t at = 0;
  while (at < rest.size()) {
    const bool between = at > 0 && rest[at] == '_' && at + 1 < rest.size();
    if (between && is_digit(rest[at + 1], base)) ++at;
    if (!is_digit(rest[at], base)) break;
    digits += rest[at++];
  }
  rest.remove_prefix(at);
  return at > 0;
}

bool take(std::string_view& rest, std::string_view characters) {
  if (rest.empty() || characters.find(rest[0]) == std::string_view::npos) {
    return false;
  }
  rest.remove_prefix(1);
  return true;
}

Value parsed_integer(std::string_view token, const std::string& digits,
                     int base) {
  std::int64_t value = 0;
  const char* const end = digits.data() + digits.size();
  if (std::from_chars(digits.data(), end, value, base).ec != std::errc()) {
    refuse(token, "does not fit into 64 bits");
  }
  return value;
}

Value parsed_number(std::string_view token, const std::string& digits) {
  double value = 0;
  const char* const end = digits.data() + digits.size();
  if (std::from_chars(digits.data(), end, value).ec != std::errc()) {
    refuse(token, "is beyond the range of numbers");
  }
  return value;
}

// Nothing if the token is not built like a number.
std::optional<Value> decimal(std::string_view token) {
  std::string_view rest = token;
  std::string digits = rest[0] == '-' ? "-" : "";
  take(rest, "+-");
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (rest == "inf") return digits.empty() ? kInfinity : -kInfinity;
  if (rest == "nan") return std::numeric_limits<double>::quiet_NaN();
  const bool zero = !rest.empty() && rest[0] == '0';
  const std::size_t before = digits.size();
  if (!take_digits(rest, digits)) return std::nullopt;
  if (zero && digits.size() > before + 1) return std::nullopt;
  if (rest.empty()) return parsed_integer(token, digits, 10);
  if (take(rest, ".")) {
    digits += '.';
    if (!take_digits(rest, digits)) return std::nullopt;
  }
  if (take(rest, "eE")) {
    digits += 'e';
    if (!rest.empty() && rest[0] == '-') digits += '-';
    take(rest, "+-");
    if (!take_digits(rest, digits)) return std::nullopt;
  }
  if (!rest.empty()) return std::nullopt;
  return parsed_number(token, digits);
}

std::optional<Value> with_prefix(std::string_view token) {
  const std::string_view prefix = token.substr(0, 2);
  const int base = prefix == "0x"   ? 16
                   : prefix == "0o" ? 8
                   : prefix == "0b" ? 2
                                    : 0;
  if (base == 0) return std::nullopt;
  std::string_view rest = token.substr(2);
  std::string digits;
  if (!take_digits(rest, digits, base) || !rest.empty()) return std::nullopt;
  return parsed_integer(token, digits, base);
}

bool looks_like_date(std::string_view token) {
  return is_digit(token[0], 10) &&
         ((token.size() >= 10 && token[4] == '-' && token[7] == '-') ||
          (token.size() >= 5 && token[2] == ':'));
}

}  // namespace

TomlValue parse_bare_value(std::string_view token) {
  std::optional<Value> value;
  if (token == "true" || token == "false") {
    value = token == "true";
  } else {
    value = with_prefix(token);
    if (!value) value = decimal(token);
  }
  if (value) return {value, type_name(*value)};
  if (looks_like_date(token)) return {std::nullopt, "a date or time"};
  refuse(token, "is no value; strings need quotes");
}

}  // namespace polyattn::run
