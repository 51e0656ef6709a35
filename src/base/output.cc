#include "base/output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <stdexcept>

namespace polyattn::base {
namespace {

std::filesystem::path folder_of(const std::string& path) {
  const auto folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? std::filesystem::path(".") : folder;
}

}  // namespace

void print_text(std::string_view text) {
  const std::size_t written = std::fwrite(text.data(), 1, text.size(), stdout);
  if (written != text.size() || std::fflush(stdout) != 0) {
    throw std::runtime_error(fmt::format("cannot write to standard output: {}",
                                         std::strerror(errno)));
  }
}

void check_writable(const std::string& path) {
  if (std::filesystem::is_directory(path)) {
    throw std::runtime_error(
        fmt::format("cannot write {}: it is a directory", path));
  }
  if (::access(folder_of(path).c_str(), W_OK | X_OK) != 0) {
    throw std::runtime_error(fmt::format("cannot write {}: folder {}: {}", path,
                                         folder_of(path).string(),
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
