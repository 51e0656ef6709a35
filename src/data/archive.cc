#include "data/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/message.h"
#include "data/file.h"
#include "data/sets.h"

namespace polyattn::data {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{1} << 16;

// One archive, opened for reading from its beginning to its end.
class Reader {
 public:
  explicit Reader(std::string source)
      : source_(std::move(source)),
        archive_(::archive_read_new(), &::archive_read_free) {
    if (!archive_) throw std::bad_alloc();
  }

  struct archive* get() const {
    return archive_.get();
  }

  // libarchive's warnings are about names and attributes, which we judge
  // ourselves.
  void check(int result) const {
    if (result >= ARCHIVE_WARN) return;
    const char* reason = ::archive_error_string(get());
    throw DataError(
        fmt::format("{}: the archive is damaged: {}", source_,
                    base::shortened(reason ? reason : "no reason")));
  }

  // nullptr at the end.
  struct archive_entry* next() const {
    struct archive_entry* entry = nullptr;
    const int result = ::archive_read_next_header(get(), &entry);
    if (result == ARCHIVE_EOF) return nullptr;
    check(result);
    return entry;
  }

  // The content of the entry that next() gave, piece by piece.
  void read(const std::function<void(std::span<const std::byte>)>& take) const {
    std::vector<std::byte> buffer(kBlockBytes);
    while (true) {
      const la_ssize_t count =
          ::archive_read_data(get(), buffer.data(), buffer.size());
      if (count < 0) check(static_cast<int>(count));
      if (count <= 0) return;
      take(std::span(buffer).first(static_cast<std::size_t>(count)));
    }
  }

  const std::string& source() const { return source_; }

 private:
  std::string source_;
  std::unique_ptr<struct archive, int (*)(struct archive*)> archive_;
};

std::string path_of(struct archive_entry* entry) {
  const char* path = ::archive_entry_pathname(entry);
  std::string text = path == nullptr ? "" : path;
  if (text.starts_with("./")) text.erase(0, 2);
  return text;
}

std::string_view last_part(std::string_view path) {
  return path.substr(path.rfind('/') + 1);  // all of it if there is no '/'
}

// Letters that mean nothing to a shell, a terminal or a file system.
bool is_plain_name(std::string_view name) {
  return !name.empty() && name[0] != '.' &&
         std::all_of(name.begin(), name.end(), [](unsigned char letter) {
           return std::isalnum(letter) != 0 || letter == '_' || letter == '-' ||
                  letter == '.';
         });
}

bool matches(std::string_view wanted, std::string_view path) {
  const std::string_view pattern = last_part(wanted);
  if (!pattern.starts_with('*')) return wanted == path;
  const std::string_view name = last_part(path);
  const std::string_view folder = wanted.substr(0, wanted.rfind('/') + 1);
  return path.size() == folder.size() + name.size() &&
         path.starts_with(folder) && name.ends_with(pattern.substr(1)) &&
         is_plain_name(name);
}

class Unpacker {
 public:
  explicit Unpacker(const UnpackJob& job)
      : job_(job), left_(job.members.size()), seen_(job.members.size()) {
    for (std::size_t i = 0; i < left_.size(); ++i) {
      left_[i] = job.members[i].max_size;
    }
  }

  void take_all(const Reader& reader) {
    while (struct archive_entry* entry = reader.next()) {
      const std::string path = path_of(entry);
      for (std::size_t i = 0; i < job_.members.size(); ++i) {
        if (!matches(job_.members[i].path, path)) continue;
        if (::archive_entry_filetype(entry) != AE_IFREG ||
            ::archive_entry_hardlink(entry) != nullptr) {
          refuse(path, "is not a regular file");
        }
        seen_[i] = true;
        take(reader, path, left_[i]);
        break;
      }
    }
    for (std::size_t i = 0; i < seen_.size(); ++i) {
      if (!seen_[i]) refuse(job_.members[i].path, "is missing");
    }
  }

 private:
  [[noreturn]] void refuse(std::string_view member,
                           const std::string& reason) const {
    throw DataError(fmt::format("{}: its member {} {}", job_.archive.string(),
                                base::in_quotes(member), reason));
  }

  // `left`: how many bytes it may have.
  void take(const Reader& reader, const std::string& path,
            std::uint64_t& left) {
    const std::string name(last_part(path));
    if (!names_.insert(name).second) refuse(path, "is there twice");
    FileWriter file(job_.folder / name, FileWriter::Mode::kNew);
    reader.read([&](std::span<const std::byte> bytes) {
      if (bytes.size() > left) refuse(path, "is longer than expected");
      left -= bytes.size();
      file.write(bytes);
    });
    file.close();
  }

  const UnpackJob& job_;
  std::vector<std::uint64_t> left_;
  std::vector<bool> seen_;
  std::set<std::string> names_;
};

void unpack_tarball(const UnpackJob& job) {
  const Reader reader(job.archive.string());
  reader.check(::archive_read_support_filter_gzip(reader.get()));
  reader.check(::archive_read_support_format_tar(reader.get()));
  reader.check(::archive_read_open_filename(reader.get(), job.archive.c_str(),
                                            kBlockBytes));
  Unpacker(job).take_all(reader);
}

// The member data.tar.* of a .deb, still compressed.
std::vector<std::byte> inner_tar(const UnpackJob& job) {
  constexpr std::size_t kMaxBytes = std::size_t{1} << 30;
  const Reader reader(job.archive.string());
  reader.check(::archive_read_support_format_ar(reader.get()));
  reader.check(::archive_read_open_filename(reader.get(), job.archive.c_str(),
                                            kBlockBytes));
  while (struct archive_entry* entry = reader.next()) {
    if (!path_of(entry).starts_with("data.tar")) continue;
    std::vector<std::byte> content;
    reader.read([&](std::span<const std::byte> bytes) {
      if (bytes.size() > kMaxBytes - content.size()) {
        throw DataError(fmt::format("{}: its data.tar is longer than {} bytes",
                                    reader.source(), kMaxBytes));
      }
      content.insert(content.end(), bytes.begin(), bytes.end());
    });
    return content;
  }
  throw DataError(fmt::format("{}: there is no data.tar in it; is it a .deb?",
                              reader.source()));
}

void unpack_debian(const UnpackJob& job) {
  const std::vector<std::byte> tar = inner_tar(job);
  const Reader reader(job.archive.string() + " (data.tar)");
  reader.check(::archive_read_support_filter_gzip(reader.get()));
  reader.check(::archive_read_support_filter_xz(reader.get()));
  reader.check(::archive_read_support_filter_zstd(reader.get()));
  reader.check(::archive_read_support_format_tar(reader.get()));
  reader.check(
      ::archive_read_open_memory(reader.get(), tar.data(), tar.size()));
  Unpacker(job).take_all(reader);
}

}  // namespace

void unpack(const UnpackJob& job) {
  if (job.kind == ArchiveKind::kDebian) return unpack_debian(job);
  unpack_tarball(job);
}

}  // namespace polyattn::data
