#include "data/gzip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>

#include "data/sets.h"

namespace polyattn::data {
namespace {

// zlib itself, and not libarchive (3.6): its gzip filter neither checks the
// sums and lengths of the members nor minds what follows them.
struct Frame {
  int window_bits;
  const char* name;
};
constexpr Frame kGzip = {15 + 16, "gzipped file"};  // the largest window
constexpr Frame kZlib = {15, "compressed part"};

class Inflater {
 public:
  Inflater(std::span<const std::byte> bytes, const Frame& frame,
           const std::string& source)
      : rest_(bytes), frame_(frame), source_(source) {
    if (::inflateInit2(&stream_, frame_.window_bits) != Z_OK) {
      throw DataError(fmt::format("{}: zlib cannot be started", source_));
    }
  }
  ~Inflater() { ::inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Fills `to` as far as there is content; returns how far.
  std::size_t read(std::span<std::byte> to) {
    std::size_t done = 0;
    while (done < to.size() && !ended_) done += step(to.subspan(done));
    return done;
  }

 private:
  std::size_t step(std::span<std::byte> to) {
    constexpr std::size_t kMost = std::numeric_limits<uInt>::max();
    const auto in = static_cast<uInt>(std::min(rest_.size(), kMost));
    const auto out = static_cast<uInt>(std::min(to.size(), kMost));
    stream_.next_in = reinterpret_cast<Bytef*>(
        const_cast<std::byte*>(rest_.data()));  // zlib does not write there
    stream_.avail_in = in;
    stream_.next_out = reinterpret_cast<Bytef*>(to.data());
    stream_.avail_out = out;
    const int result = ::inflate(&stream_, Z_NO_FLUSH);
    rest_ = rest_.subspan(in - stream_.avail_in);
    if (result == Z_STREAM_END) {
      ended_ = rest_.empty();
      // Another member, which begins with a header of its own.
      if (!ended_) ::inflateReset(&stream_);
    } else if (result == Z_BUF_ERROR) {
      throw DataError(fmt::format("{}: the {} is cut short; get it again",
                                  source_, frame_.name));
    } else if (result != Z_OK) {
      throw DataError(fmt::format(
          "{}: the {} is damaged ({}); get it again", source_, frame_.name,
          stream_.msg == nullptr ? "no reason given" : stream_.msg));
    }
    return out - stream_.avail_out;
  }

  z_stream stream_{};
  std::span<const std::byte> rest_;
  const Frame& frame_;
  const std::string& source_;
  bool ended_ = false;
};

// The last four bytes claim the length of the content. The claim only saves
// copies, and counts for no more than deflate can do (1032 to 1).
std::size_t first_guess(std::span<const std::byte> bytes,
                        std::uint64_t max_bytes) {
  std::uint64_t claim = 0;
  if (bytes.size() >= 4) {
    for (std::size_t i = 0; i < 4; ++i) {
      claim |= std::to_integer<std::uint64_t>(bytes[bytes.size() - 4 + i])
               << (8 * i);
    }
  }
  return static_cast<std::size_t>(
      std::min({claim, max_bytes, std::uint64_t{1032} * bytes.size()}));
}

// `room` bytes are expected, one more than the guess: reading it tells that the
// content ends.
std::vector<std::byte> unpack(Inflater& inflater, std::size_t room,
                              std::uint64_t max_bytes,
                              const std::string& source) {
  constexpr std::size_t kLeast = 4096;
  std::vector<std::byte> content;
  std::size_t size = 0;
  while (true) {
    content.resize(room);
    size += inflater.read(std::span(content).subspan(size));
    if (size > max_bytes) {
      throw DataError(fmt::format(
          "{}: it unpacks to more than {} bytes, which is not expected", source,
          max_bytes));
    }
    if (size < room) break;
    room = std::max(kLeast, 2 * room);
    if (max_bytes < room) room = static_cast<std::size_t>(max_bytes) + 1;
  }
  content.resize(size);
  return content;
}

}  // namespace

bool is_gzip(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1f} &&
         bytes[1] == std::byte{0x8b};
}

std::vector<std::byte> gunzip(std::span<const std::byte> bytes,
                              std::uint64_t max_bytes,
                              const std::string& source) {
  if (!is_gzip(bytes)) {
    throw DataError(fmt::format("{}: this is not a gzipped file", source));
  }
  Inflater inflater(bytes, kGzip, source);
  return unpack(inflater, first_guess(bytes, max_bytes) + 1, max_bytes, source);
}

std::vector<std::byte> inflate_zlib(std::span<const std::byte> bytes,
                                    std::uint64_t max_bytes,
                                    const std::string& source) {
  Inflater inflater(bytes, kZlib, source);
  const std::uint64_t guess =
      std::min<std::uint64_t>(4 * bytes.size(), max_bytes);
  return unpack(inflater, static_cast<std::size_t>(guess) + 1, max_bytes,
                source);
}

}  // namespace polyattn::data
