#include "base/json_text.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "base/message.h"

namespace polyattn::base {
namespace {

constexpr int kMaxDepth = 16;

void spell_out(Json& json) {
  if (json.is_number_float()) {
    json = number(json.get<double>());
  } else if (json.is_structured()) {
    for (Json& part : json) spell_out(part);
  }
}

}  // namespace

Json parse_json(std::string_view text) {
  const auto limit_depth = [](int depth, Json::parse_event_t event, Json&) {
    if (depth >= kMaxDepth && (event == Json::parse_event_t::object_start ||
                               event == Json::parse_event_t::array_start)) {
      throw JsonError(
          fmt::format("values are nested more than {} deep", kMaxDepth));
    }
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), limit_depth);
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
