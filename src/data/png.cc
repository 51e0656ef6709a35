#include "data/png.h"

#include <fmt/format.h>
#include <png.h>

#include <array>
#include <csetjmp>
#include <cstring>

#include "data/sets.h"

namespace polyattn::data {
namespace {

constexpr std::array<std::byte, 8> kSignature{
    std::byte{0x89}, std::byte{'P'},  std::byte{'N'},  std::byte{'G'},
    std::byte{0x0d}, std::byte{0x0a}, std::byte{0x1a}, std::byte{0x0a}};

// What the callbacks of libpng see. libpng leaves its functions with longjmp()
// when something is wrong, so nothing here has a destructor that would then be
// skipped, and the functions that call setjmp() have no such local variables.
struct PngSession {
  std::span<const std::byte> rest;
  std::array<char, 200> error{};
  std::jmp_buf jump;
};

void on_png_error(png_structp png, png_const_charp message) {
  auto* session = static_cast<PngSession*>(::png_get_error_ptr(png));
  std::strncpy(session->error.data(), message, session->error.size() - 1);
  std::longjmp(session->jump, 1);
}

void on_warning(png_structp /*png*/, png_const_charp /*message*/) {}

void on_read(png_structp png, png_bytep to, std::size_t size) {
  auto* session = static_cast<PngSession*>(::png_get_io_ptr(png));
  if (size > session->rest.size()) ::png_error(png, "it is cut short");
  std::memcpy(to, session->rest.data(), size);
  session->rest = session->rest.subspan(size);
}

class PngDecoder {
 public:
  PngDecoder(std::span<const std::byte> bytes, const std::string& source)
      : source_(source), bytes_(bytes.size()) {
    session_.rest = bytes;
    png_ = ::png_create_read_struct(PNG_LIBPNG_VER_STRING, &session_,
                                    on_png_error, on_warning);
    info_ = png_ == nullptr ? nullptr : ::png_create_info_struct(png_);
    if (info_ == nullptr) {
      ::png_destroy_read_struct(&png_, nullptr, nullptr);
      throw std::bad_alloc();
    }
  }
  ~PngDecoder() { ::png_destroy_read_struct(&png_, &info_, nullptr); }
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;

  ImageSize read_size() {
    if (!read_header()) refuse(session_.error.data());
    check_size();
    return {width_, height_};
  }

  RgbImage decode() {
    read_size();
    RgbImage image{width_, height_, {}};
    image.pixels.resize(width_ * height_ * 3);
    std::vector<png_bytep> rows(height_);
    for (std::size_t y = 0; y < height_; ++y) {
      rows[y] = &image.pixels[y * width_ * 3];
    }
    if (!read_rows(rows.data())) refuse(session_.error.data());
    return image;
  }

 private:
  [[noreturn]] void refuse(const std::string& reason) const {
    throw DataError(fmt::format("{}: the PNG is damaged: {}", source_, reason));
  }

  bool read_header() {
    if (setjmp(session_.jump) != 0) return false;
    ::png_set_read_fn(png_, &session_, on_read);
    // Text and profiles do not interest us, however long they are.
    ::png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, 0);
    ::png_set_chunk_malloc_max(png_, 1 << 20);
    ::png_read_info(png_, info_);
    width_ = ::png_get_image_width(png_, info_);
    height_ = ::png_get_image_height(png_, info_);
    row_bytes_ = ::png_get_rowbytes(png_, info_);
    return true;
  }

  // Before anything is allocated. Deflate packs at most 1032 bytes into one.
  void check_size() const {
    const std::uint64_t pixels = std::uint64_t{width_} * height_;
    if (pixels > kMaxPixels) {
      throw DataError(
          fmt::format("{}: {} x {} pixels are more than the {} that are read",
                      source_, width_, height_, kMaxPixels));
    }
    if (std::uint64_t{row_bytes_} * height_ > std::uint64_t{1032} * bytes_) {
      refuse(fmt::format("{} x {} pixels cannot be in {} bytes", width_,
                         height_, bytes_));
    }
  }

  bool read_rows(png_bytepp rows) {
    if (setjmp(session_.jump) != 0) return false;
    ::png_set_expand(png_);  // palettes, few bits, transparency as alpha
    ::png_set_scale_16(png_);
    ::png_set_gray_to_rgb(png_);
    ::png_set_strip_alpha(png_);
    ::png_set_interlace_handling(png_);
    ::png_read_update_info(png_, info_);
    if (::png_get_rowbytes(png_, info_) != width_ * 3) {
      ::png_error(png_, "its rows have an unexpected length");
    }
    ::png_read_image(png_, rows);
    ::png_read_end(png_, nullptr);
    return true;
  }

  const std::string& source_;
  std::size_t bytes_;
  PngSession session_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::size_t width_ = 0;
  std::size_t height_ = 0;
  std::size_t row_bytes_ = 0;
};

void check_is_png(std::span<const std::byte> bytes, const std::string& source) {
  if (is_png(bytes)) return;
  throw DataError(fmt::format("{}: this is not a PNG file", source));
}

}  // namespace

bool is_png(std::span<const std::byte> bytes) {
  return bytes.size() >= kSignature.size() &&
         std::memcmp(bytes.data(), kSignature.data(), kSignature.size()) == 0;
}

ImageSize png_size(std::span<const std::byte> bytes,
                   const std::string& source) {
  check_is_png(bytes, source);
  return PngDecoder(bytes, source).read_size();
}

RgbImage decode_png(std::span<const std::byte> bytes,
                    const std::string& source) {
  check_is_png(bytes, source);
  return PngDecoder(bytes, source).decode();
}

}  // namespace polyattn::data
