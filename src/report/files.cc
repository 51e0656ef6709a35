#include "report/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <stdexcept>

namespace polyattn::report {
namespace {

constexpr std::int64_t kNanoseconds = 1'000'000'000;

[[noreturn]] void refuse_file(const std::filesystem::path& path,
                              const std::string& why) {
  throw std::runtime_error(
      fmt::format("cannot read {}: {}", path.string(), why));
}

// Where the open file is. The kernel knows, whatever led there.
std::filesystem::path place_of(const base::FileDescriptor& file) {
  std::error_code error;
  return std::filesystem::read_symlink(
      fmt::format("/proc/self/fd/{}", file.get()), error);
}

}  // namespace

FileState file_state(const std::filesystem::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  return {
      .size = status.st_size,
      .modified = status.st_mtim.tv_sec * kNanoseconds + status.st_mtim.tv_nsec,
      .number = status.st_ino};
}

std::string modified_text(const FileState& state) {
  if (!state.exists()) return "";
  const std::time_t seconds = state.modified / kNanoseconds;
  std::tm parts{};
  char text[32] = "";
  if (::gmtime_r(&seconds, &parts) == nullptr) return "";
  const std::size_t length =
      std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text, length};
}

bool is_beneath(const std::filesystem::path& path,
                const std::filesystem::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end())
             .first == folder.end();
}

base::FileDescriptor open_file(const std::filesystem::path& path,
                               const std::filesystem::path& root) {
  // Without O_NONBLOCK a pipe would be waited for.
  base::FileDescriptor file(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.is_open()) refuse_file(path, std::strerror(errno));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) {
    refuse_file(path, std::strerror(errno));
  }
  if (!S_ISREG(status.st_mode)) refuse_file(path, "not a file");
  if (!root.empty() && !is_beneath(place_of(file), root)) {
    refuse_file(path, fmt::format("it leads out of {}", root.string()));
  }
  return file;
}

std::string read_file(const std::filesystem::path& path, std::size_t max_bytes,
                      const std::filesystem::path& root) {
  const base::FileDescriptor file = open_file(path, root);
  constexpr std::size_t kPiece = 1 << 16;
  std::string text;
  // One more than allowed: the size may change on the way.
  while (text.size() <= max_bytes) {
    const std::size_t had = text.size();
    text.resize(had + kPiece);
    const ssize_t got = ::read(file.get(), text.data() + had, kPiece);
    text.resize(had + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse_file(path, std::strerror(errno));
    if (got == 0) return text;
  }
  refuse_file(path, fmt::format("it has more than {} bytes", max_bytes));
}

}  // namespace polyattn::report
