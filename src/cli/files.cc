#include "cli/files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <system_error>

namespace polyattn::cli {
namespace {

std::filesystem::path folder_of(const std::string& path) {
  const auto folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? std::filesystem::path(".") : folder;
}

bool write_whole(const std::string& path, std::string_view text) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return false;
  bool good = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  good = std::fflush(file) == 0 && good;
  good = ::fsync(::fileno(file)) == 0 && good;
  return std::fclose(file) == 0 && good;
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

void write_file_atomically(const std::string& path, std::string_view text) {
  const std::string temporary = fmt::format("{}.{}.tmp", path, ::getpid());
  std::string problem;
  if (!write_whole(temporary, text)) {
    problem = std::strerror(errno);
  } else if (std::rename(temporary.c_str(), path.c_str()) != 0) {
    problem = std::strerror(errno);
  }
  if (problem.empty()) return;
  std::error_code ignored;
  std::filesystem::remove(temporary, ignored);
  throw std::runtime_error(fmt::format("cannot write {}: {}", path, problem));
}

}  // namespace polyattn::cli
