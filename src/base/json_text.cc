#include "base/json_text.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

#include "base/message.h"

namespace polyattn::base {
namespace {

constexpr std::size_t kMaxDepth = 16;
// Of one object. Each new key is compared with all before it.
constexpr std::size_t kMaxMembers = 1000;

// Bounds what parsing costs, in one pass. The parser's callback could count as
// well, but for each value that ends it walks through all its siblings. Text
// that is no JSON may pass, or be refused here: the parser refuses it anyway.
void check_shape(std::string_view text) {
  std::array<std::size_t, kMaxDepth> members{};  // of the values that are open
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (depth == kMaxDepth) {
        throw JsonError(
            fmt::format("values are nested more than {} deep", kMaxDepth));
      }
      members[depth++] = 0;
    } else if (c == '}' || c == ']') {
      if (depth-- == 0) return;
    } else if (c == ':' && depth > 0 && ++members[depth - 1] > kMaxMembers) {
      throw JsonError(
          fmt::format("an object has more than {} members", kMaxMembers));
    }
  }
}

void spell_out(Json& json) {
  if (json.is_number_float()) {
    json = number(json.get<double>());
  } else if (json.is_structured()) {
    for (Json& part : json) spell_out(part);
  }
}

}  // namespace

Json parse_json(std::string_view text) {
  check_shape(text);
  try {
    return Json::parse(text.begin(), text.end());
  } catch (const Json::parse_error& error) {
    throw JsonError(fmt::format("no JSON at byte {}", error.byte));
  } catch (const Json::exception&) {
    throw JsonError("no JSON: a number is out of range");
  }
}

Json number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

double number_of(const Json& json) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (json.is_number()) return json.get<double>();
  if (json == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (json == "inf") return kInfinity;
  if (json == "-inf") return -kInfinity;
  throw JsonError(fmt::format("{} is not a number", shortened(printed(json))));
}

std::string printed(const Json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/false,
                   Json::error_handler_t::replace);
}

std::string json_line(Json json) {
  spell_out(json);
  return printed(json) + "\n";
}

}  // namespace polyattn::base
