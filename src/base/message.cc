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

std::string grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t end = text.size(); end > 3; end -= 3) {
    text.insert(end - 3, 1, ' ');
  }
  return text;
}

}  // namespace polyattn::base
