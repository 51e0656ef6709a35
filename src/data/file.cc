#include "data/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <system_error>
#include <utility>

#include "base/atomic_file.h"
#include "data/sets.h"

namespace polyattn::data {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& path,
                         const std::string& reason) {
  throw DataError(fmt::format("cannot read {}: {}", path.string(), reason));
}

// O_NONBLOCK: a named pipe in the place of the file must not hang the program.
base::FileDescriptor open_regular(const std::filesystem::path& path,
                                  std::uint64_t max_bytes, std::size_t& size) {
  base::FileDescriptor file(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!file.is_open() || ::fstat(file.get(), &status) != 0) {
    refuse(path, std::strerror(errno));
  }
  if (!S_ISREG(status.st_mode)) refuse(path, "it is not a regular file");
  const auto bytes = static_cast<std::uint64_t>(status.st_size);
  if (bytes > max_bytes) {
    refuse(path, fmt::format("it has {} bytes, where at most {} are expected",
                             bytes, max_bytes));
  }
  size = static_cast<std::size_t>(bytes);
  return file;
}

// Bytes that were read; fewer than `size` at the end of the file.
std::size_t read_up_to(const std::filesystem::path& path, int file, void* data,
                       std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t count =
        ::read(file, static_cast<char*>(data) + done, size - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) refuse(path, std::strerror(errno));
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  return done;
}

template <typename Container>
Container read_into(const std::filesystem::path& path,
                    std::uint64_t max_bytes) {
  std::size_t size = 0;
  const base::FileDescriptor file = open_regular(path, max_bytes, size);
  Container content;
  content.resize(size);
  char beyond = 0;
  if (read_up_to(path, file.get(), content.data(), size) != size ||
      read_up_to(path, file.get(), &beyond, 1) != 0) {
    refuse(path, "its length changed meanwhile; is someone writing to it?");
  }
  return content;
}

}  // namespace

std::vector<std::byte> read_bytes(const std::filesystem::path& path,
                                  std::uint64_t max_bytes) {
  return read_into<std::vector<std::byte>>(path, max_bytes);
}

std::string read_text(const std::filesystem::path& path,
                      std::uint64_t max_bytes) {
  return read_into<std::string>(path, max_bytes);
}

void read_pieces(const std::filesystem::path& path,
                 const std::function<void(std::span<const std::byte>)>& take) {
  constexpr std::size_t kPieceBytes = std::size_t{1} << 18;
  std::size_t size = 0;
  const base::FileDescriptor file =
      open_regular(path, std::numeric_limits<std::uint64_t>::max(), size);
  std::vector<std::byte> buffer(kPieceBytes);
  while (true) {
    const std::size_t count =
        read_up_to(path, file.get(), buffer.data(), buffer.size());
    take(std::span(buffer).first(count));
    if (count < buffer.size()) return;
  }
}

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  try {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      names.push_back(entry.path().filename().string());
    }
  } catch (const std::filesystem::filesystem_error& error) {
    refuse(folder, error.code().message());
  }
  std::sort(names.begin(), names.end());
  return names;
}

void create_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error && !std::filesystem::is_directory(folder, error)) {
    error = std::make_error_code(std::errc::not_a_directory);
  }
  if (error) {
    throw DataError(fmt::format("cannot create the folder {}: {}",
                                folder.string(), error.message()));
  }
}

// kNew: never through a link that someone put there.
FileWriter::FileWriter(std::filesystem::path path, Mode mode)
    : path_(std::move(path)) {
  constexpr mode_t kPermissions = 0666;  // less the umask
  const int flags = mode == Mode::kNew ? O_EXCL : O_APPEND;
  file_ = base::FileDescriptor(::open(
      path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, kPermissions));
  if (!file_.is_open()) refuse();
}

void FileWriter::write(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()),
                              bytes.size());
  if (!base::write_all(file_.get(), text).empty()) refuse();
}

void FileWriter::close() {
  if (::close(file_.release()) != 0) refuse();
}

void FileWriter::refuse() const {
  throw DataError(
      fmt::format("cannot write {}: {}", path_.string(), std::strerror(errno)));
}

void write_whole(const std::filesystem::path& path,
                 std::span<const std::byte> bytes) {
  try {
    base::AtomicFile file(path);
    file.write(bytes);
    file.commit();
  } catch (const std::system_error& error) {
    throw DataError(error.what());
  }
}

void write_whole(const std::filesystem::path& path, std::string_view text) {
  write_whole(path, std::as_bytes(std::span(text)));
}

}  // namespace polyattn::data
