#include "base/message.h"

#include <nlohmann/json.hpp>

namespace polyattn::base {

std::string shortened(std::string_view text) {
  constexpr std::size_t kMaxBytes = 120;
  if (text.size() <= kMaxBytes) return std::string(text);
  return std::string(text.substr(0, kMaxBytes)) + "...";
}

std::string in_quotes(std::string_view text) {
  using Json = nlohmann::json;
  return Json(shortened(text))
      .dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
}

}  // namespace polyattn::base
