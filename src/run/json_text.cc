#include "run/json_text.h"

#include <fmt/format.h>

namespace polyattn::run {
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
      throw RecordError(
          fmt::format("values are nested more than {} deep", kMaxDepth));
    }
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), limit_depth);
  } catch (const Json::parse_error& error) {
    throw RecordError(fmt::format("no JSON at byte {}", error.byte));
  } catch (const Json::exception&) {
    throw RecordError("no JSON: a number is out of range");
  }
}

std::string printed(const Json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/false,
                   Json::error_handler_t::replace);
}

std::string json_line(Json json) {
  spell_out(json);
  return printed(json) + "\n";
}

}  // namespace polyattn::run
