#include "base/output.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>

namespace polyattn::base {

void print_text(std::string_view text) {
  const std::size_t written = std::fwrite(text.data(), 1, text.size(), stdout);
  if (written != text.size() || std::fflush(stdout) != 0) {
    throw std::runtime_error(fmt::format("cannot write to standard output: {}",
                                         std::strerror(errno)));
  }
}

std::string json_text(const nlohmann::ordered_json& json) {
  using Handler = nlohmann::ordered_json::error_handler_t;
  return json.dump(2, ' ', false, Handler::replace) + "\n";
}

void print_json(const nlohmann::ordered_json& json) {
  print_text(json_text(json));
}

}  // namespace polyattn::base
