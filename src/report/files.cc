#include "report/files.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <stdexcept>

#include "base/text_file.h"

namespace polyattn::report {
namespace {

constexpr std::int64_t kNanoseconds = 1'000'000'000;

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
  base::FileDescriptor file = base::open_regular_file(path);
  if (!root.empty() && !is_beneath(place_of(file), root)) {
    throw std::runtime_error(fmt::format("cannot read {}: it leads out of {}",
                                         path.string(), root.string()));
  }
  return file;
}

std::string read_file(const std::filesystem::path& path, std::size_t max_bytes,
                      const std::filesystem::path& root) {
  return base::read_open_file(open_file(path, root), path, max_bytes);
}

}  // namespace polyattn::report
