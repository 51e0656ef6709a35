#include "io/zip.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include "base/message.h"
#include "polyattn/io/torch_file.h"

namespace polyattn::io {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::uint32_t kLocal = 0x04034b50, kEntry = 0x02014b50,
                        kEnd = 0x06054b50, kEnd64 = 0x06064b50,
                        kLocator64 = 0x07064b50;
constexpr std::size_t kLocalBytes = 30, kEntryBytes = 46, kEndBytes = 22,
                      kEnd64Bytes = 56, kLocator64Bytes = 20;
constexpr std::uint64_t kMax16 = 0xffff, kMax32 = 0xffffffff;

// Where the directory lies, and how many entries it has.
struct Directory {
  std::uint64_t offset, size, count;
};

struct Entry {
  std::string name;
  std::uint64_t flags, method, stored_size, size, offset;
};

class ZipReader {
 public:
  ZipReader(Bytes archive, std::string_view source)
      : archive_(archive), source_(source) {}

  std::vector<ZipMember> members() {
    const Directory directory = find_directory();
    std::vector<ZipMember> members;
    std::set<std::string> names;
    std::uint64_t at = directory.offset;
    for (std::uint64_t i = 0; i < directory.count; ++i) {
      const Entry entry = read_entry(at);
      if (!names.insert(entry.name).second) {
        refuse(base::concat("two members are called ",
                            base::in_quotes(entry.name)));
      }
      const Bytes bytes = content(entry, directory);
      if (entry.name.ends_with('/')) continue;
      members.push_back({entry.name, bytes, entry.method != 0});
    }
    if (at != directory.offset + directory.size) {
      refuse("the directory has not the size that it says");
    }
    check_overlaps();
    return members;
  }

 private:
  [[noreturn]] void refuse(std::string_view reason) const {
    throw TorchFileError(source_,
                         base::concat("the zip archive is damaged: ", reason));
  }

  Bytes bytes(std::uint64_t offset, std::uint64_t size) const {
    if (offset > archive_.size() || size > archive_.size() - offset) {
      refuse(base::concat("bytes ", offset, " and ", size,
                          " more are not in a file of ", archive_.size(),
                          "; is it cut short?"));
    }
    return archive_.subspan(offset, size);
  }

  // Little-endian, of `size` bytes.
  std::uint64_t number(std::uint64_t offset, std::uint64_t size) const {
    const Bytes digits = bytes(offset, size);
    std::uint64_t value = 0;
    for (std::size_t i = digits.size(); i-- > 0;) {
      value = value << 8 | std::to_integer<std::uint64_t>(digits[i]);
    }
    return value;
  }

  std::string text(std::uint64_t offset, std::uint64_t size) const {
    const Bytes letters = bytes(offset, size);
    return {reinterpret_cast<const char*>(letters.data()), letters.size()};
  }

  // The end is followed by a comment, whose length it knows.
  std::uint64_t find_end() const {
    const std::uint64_t size = archive_.size();
    for (std::uint64_t comment = 0;
         comment <= kMax16 && comment + kEndBytes <= size; ++comment) {
      const std::uint64_t at = size - kEndBytes - comment;
      if (number(at, 4) == kEnd && number(at + 20, 2) == comment) return at;
    }
    refuse("it has no directory at its end; is it cut short?");
  }

  Directory find_directory() const {
    const std::uint64_t end = find_end();
    Directory directory{.offset = number(end + 16, 4),
                        .size = number(end + 12, 4),
                        .count = number(end + 10, 2)};
    if (directory.offset == kMax32 || directory.size == kMax32 ||
        directory.count == kMax16) {
      directory = find_directory64(end);
    }
    bytes(directory.offset, directory.size);
    if (directory.offset + directory.size > end) {
      refuse("the directory reaches beyond its end");
    }
    return directory;
  }

  Directory find_directory64(std::uint64_t end) const {
    if (end < kLocator64Bytes ||
        number(end - kLocator64Bytes, 4) != kLocator64) {
      refuse("the numbers of its end do not fit 32 bits");
    }
    const std::uint64_t at = number(end - kLocator64Bytes + 8, 8);
    bytes(at, kEnd64Bytes);
    if (number(at, 4) != kEnd64) refuse("its 64-bit end is elsewhere");
    return {.offset = number(at + 48, 8),
            .size = number(at + 40, 8),
            .count = number(at + 32, 8)};
  }

  // The entry at `at`, which then is that of the next.
  Entry read_entry(std::uint64_t& at) const {
    bytes(at, kEntryBytes);
    if (number(at, 4) != kEntry) refuse("an entry of its directory is none");
    const std::uint64_t name_size = number(at + 28, 2);
    const std::uint64_t extra_size = number(at + 30, 2);
    const std::uint64_t extra = at + kEntryBytes + name_size;
    Entry entry{.name = text(at + kEntryBytes, name_size),
                .flags = number(at + 8, 2),
                .method = number(at + 10, 2),
                .stored_size = number(at + 20, 4),
                .size = number(at + 24, 4),
                .offset = number(at + 42, 4)};
    read_extra(extra, extra + extra_size, entry);
    at = extra + extra_size + number(at + 32, 2);
    return entry;
  }

  // Of its fields that of zip64, which has the numbers that did not fit.
  void read_extra(std::uint64_t at, std::uint64_t end, Entry& entry) const {
    while (at + 4 <= end) {
      const std::uint64_t kind = number(at, 2);
      const std::uint64_t next = at + 4 + number(at + 2, 2);
      if (next > end) refuse("a field of its directory is too long");
      at += 4;
      if (kind == 1) {
        for (std::uint64_t* value :
             {&entry.size, &entry.stored_size, &entry.offset}) {
          if (*value != kMax32) continue;
          if (at + 8 > next) refuse("a 64-bit field is too short");
          *value = number(at, 8);
          at += 8;
        }
      }
      at = next;
    }
  }

  Bytes content(const Entry& entry, const Directory& directory) {
    const std::string name = base::in_quotes(entry.name);
    if ((entry.flags & 1U) != 0) {
      refuse(base::concat("member ", name, " is encrypted"));
    }
    if (entry.method == 0 && entry.size != entry.stored_size) {
      refuse(base::concat("member ", name, " has two sizes"));
    }
    bytes(entry.offset, kLocalBytes);
    const std::uint64_t name_size = number(entry.offset + 26, 2);
    if (number(entry.offset, 4) != kLocal ||
        text(entry.offset + kLocalBytes, name_size) != entry.name) {
      refuse(base::concat("member ", name, " is not where it should be"));
    }
    const std::uint64_t begin =
        entry.offset + kLocalBytes + name_size + number(entry.offset + 28, 2);
    const Bytes result = bytes(begin, entry.stored_size);
    if (begin + entry.stored_size > directory.offset) {
      refuse(base::concat("member ", name, " reaches into the directory"));
    }
    ranges_.emplace_back(entry.offset, begin + entry.stored_size);
    return result;
  }

  void check_overlaps() {
    std::sort(ranges_.begin(), ranges_.end());
    for (std::size_t i = 1; i < ranges_.size(); ++i) {
      if (ranges_[i].first < ranges_[i - 1].second) {
        refuse("two of its members overlap");
      }
    }
  }

  Bytes archive_;
  std::string_view source_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges_;
};

}  // namespace

std::vector<ZipMember> zip_members(std::span<const std::byte> archive,
                                   std::string_view source) {
  return ZipReader(archive, source).members();
}

}  // namespace polyattn::io
