#include "base/text_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <span>
#include <stdexcept>

#include "base/atomic_file.h"

namespace polyattn::base {
namespace {

[[noreturn]] void refuse_file(const std::filesystem::path& path,
                              const std::string& why) {
  throw std::runtime_error(
      fmt::format("cannot read {}: {}", path.string(), why));
}

}  // namespace

std::string read_text_file(const std::filesystem::path& path,
                           std::size_t max_bytes) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) {
    refuse_file(path, error ? error.message() : std::strerror(ENOENT));
  }
  if (!std::filesystem::is_regular_file(status))
    refuse_file(path, "not a file");
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse_file(path, std::strerror(errno));
  // One more than allowed: the size may have changed since, or be a lie.
  std::string text;
  constexpr std::size_t kPiece = 1 << 16;
  while (file && text.size() <= max_bytes) {
    const std::size_t had = text.size();
    text.resize(had + kPiece);
    file.read(text.data() + had, kPiece);
    text.resize(had + static_cast<std::size_t>(file.gcount()));
  }
  if (file.bad()) refuse_file(path, "the system could not read it");
  if (text.size() > max_bytes) {
    refuse_file(path, fmt::format("it has more than {} bytes", max_bytes));
  }
  return text;
}

void write_text_file(const std::filesystem::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

}  // namespace polyattn::base
