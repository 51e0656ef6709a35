#include "data/jpeg.h"

#include <fmt/format.h>

// jpeglib.h needs these two.
#include <cstddef>
#include <cstdio>
// Its order matters.
#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>
#include <array>
#include <csetjmp>

#include "data/sets.h"

namespace polyattn::data {
namespace {

// As in png.cc: libjpeg is left by longjmp(), so nothing here has a destructor.
struct Session {
  jpeg_error_mgr manager{};  // first, because libjpeg hands us its address
  std::array<char, JMSG_LENGTH_MAX> error{};
  std::jmp_buf jump;
};

void on_error(j_common_ptr decoder) {
  auto* session = reinterpret_cast<Session*>(decoder->err);
  session->manager.format_message(decoder, session->error.data());
  std::longjmp(session->jump, 1);
}

// libjpeg makes up what is missing at the end of a file; we do not. Other
// warnings are about oddities that pictures of many cameras have.
void on_message(j_common_ptr decoder, int level) {
  const int code = decoder->err->msg_code;
  if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER)) {
    on_error(decoder);
  }
}

class JpegDecoder {
 public:
  JpegDecoder(std::span<const std::byte> bytes, const std::string& source)
      : bytes_(bytes), source_(source) {
    decoder_.err = ::jpeg_std_error(&session_.manager);
    session_.manager.error_exit = on_error;
    session_.manager.emit_message = on_message;
  }
  ~JpegDecoder() { ::jpeg_destroy_decompress(&decoder_); }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  // The first call.
  ImageSize read_size() {
    if (!read_header()) refuse(session_.error.data());
    check_size();
    return {decoder_.image_width, decoder_.image_height};
  }

  RgbImage decode(std::size_t shrink) {
    decoder_.scale_denom = static_cast<unsigned>(shrink);
    if (!start()) refuse(session_.error.data());
    const std::size_t width = decoder_.output_width;
    RgbImage image{width, decoder_.output_height, {}};
    image.pixels.resize(width * image.height * 3);
    std::vector<JSAMPLE> line(width * 4);
    if (!read_rows(image.pixels.data(), line.data())) {
      refuse(session_.error.data());
    }
    return image;
  }

 private:
  [[noreturn]] void refuse(const std::string& reason) const {
    throw DataError(
        fmt::format("{}: the JPEG is damaged: {}", source_, reason));
  }

  // Before anything is allocated. A block of 64 pixels takes a bit at least;
  // arithmetic coding, which needs less, is as good as never used.
  void check_size() const {
    const std::uint64_t pixels =
        std::uint64_t{decoder_.image_width} * decoder_.image_height;
    if (pixels > kMaxPixels) {
      throw DataError(fmt::format(
          "{}: {} x {} pixels are more than the {} that are read", source_,
          decoder_.image_width, decoder_.image_height, kMaxPixels));
    }
    if (decoder_.arith_code) {
      throw DataError(fmt::format(
          "{}: it is a JPEG with arithmetic coding, which is not read",
          source_));
    }
    if (pixels > 8 * 64 * std::uint64_t{bytes_.size()}) {
      refuse(fmt::format("{} x {} pixels cannot be in {} bytes",
                         decoder_.image_width, decoder_.image_height,
                         bytes_.size()));
    }
  }

  bool read_header() {
    if (setjmp(session_.jump) != 0) return false;
    ::jpeg_create_decompress(&decoder_);
    ::jpeg_mem_src(&decoder_,
                   reinterpret_cast<const unsigned char*>(bytes_.data()),
                   bytes_.size());
    ::jpeg_read_header(&decoder_, TRUE);
    const bool inks = decoder_.jpeg_color_space == JCS_CMYK ||
                      decoder_.jpeg_color_space == JCS_YCCK;
    decoder_.out_color_space = inks ? JCS_CMYK : JCS_RGB;
    return true;
  }

  bool start() {
    if (setjmp(session_.jump) != 0) return false;
    ::jpeg_start_decompress(&decoder_);
    return true;
  }

  bool read_rows(std::uint8_t* pixels, JSAMPLE* line) {
    if (setjmp(session_.jump) != 0) return false;
    const std::size_t stride = std::size_t{decoder_.output_width} * 3;
    while (decoder_.output_scanline < decoder_.output_height) {
      std::uint8_t* row = pixels + decoder_.output_scanline * stride;
      if (decoder_.out_color_space == JCS_CMYK) {
        ::jpeg_read_scanlines(&decoder_, &line, 1);
        mix_inks(line, row);
      } else {
        ::jpeg_read_scanlines(&decoder_, &row, 1);
      }
    }
    ::jpeg_finish_decompress(&decoder_);
    return true;
  }

  // Adobe's programs store the paper that is left, all others the ink.
  void mix_inks(const JSAMPLE* line, std::uint8_t* row) const {
    const int flip = decoder_.saw_Adobe_marker ? 0 : 255;
    for (std::size_t x = 0; x < decoder_.output_width; ++x) {
      for (std::size_t c = 0; c < 3; ++c) {
        const int colour = line[4 * x + c] ^ flip;
        const int black = line[4 * x + 3] ^ flip;
        row[3 * x + c] = static_cast<std::uint8_t>(colour * black / 255);
      }
    }
  }

  std::span<const std::byte> bytes_;
  const std::string& source_;
  Session session_;
  jpeg_decompress_struct decoder_{};
};

void check_is_jpeg(std::span<const std::byte> bytes,
                   const std::string& source) {
  if (is_jpeg(bytes)) return;
  throw DataError(fmt::format("{}: this is not a JPEG file", source));
}

}  // namespace

bool is_jpeg(std::span<const std::byte> bytes) {
  return bytes.size() >= 3 && bytes[0] == std::byte{0xff} &&
         bytes[1] == std::byte{0xd8} && bytes[2] == std::byte{0xff};
}

ImageSize jpeg_size(std::span<const std::byte> bytes,
                    const std::string& source) {
  check_is_jpeg(bytes, source);
  return JpegDecoder(bytes, source).read_size();
}

RgbImage decode_jpeg(std::span<const std::byte> bytes, std::size_t min_side,
                     const std::string& source) {
  check_is_jpeg(bytes, source);
  JpegDecoder decoder(bytes, source);
  const ImageSize size = decoder.read_size();
  const std::size_t least = 2 * std::max<std::size_t>(min_side, 1);
  std::size_t shrink = 1;
  while (shrink < 8 &&
         std::min(size.width, size.height) / (2 * shrink) >= least) {
    shrink *= 2;
  }
  return decoder.decode(shrink);
}

RgbImage decode_shrunk_jpeg(std::span<const std::byte> bytes,
                            std::size_t shrink, const std::string& source) {
  check_is_jpeg(bytes, source);
  JpegDecoder decoder(bytes, source);
  decoder.read_size();
  return decoder.decode(shrink);
}

}  // namespace polyattn::data
