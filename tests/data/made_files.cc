#include "data/made_files.h"

#include <archive.h>
#include <archive_entry.h>
#include <png.h>
#include <zlib.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <stdexcept>

// It needs what cstdio declares.
#include <jpeglib.h>

namespace polyattn::data::test {
namespace {

void require(bool condition, const char* what) {
  if (!condition) throw std::runtime_error(what);
}

using Archive = std::unique_ptr<struct archive, int (*)(struct archive*)>;

void add_entry(struct archive* out, const TarEntry& entry) {
  const std::unique_ptr<struct archive_entry, void (*)(struct archive_entry*)>
      header(::archive_entry_new(), &::archive_entry_free);
  ::archive_entry_set_pathname(header.get(), entry.name.c_str());
  ::archive_entry_set_filetype(header.get(), AE_IFREG);
  ::archive_entry_set_perm(header.get(), 0644);
  ::archive_entry_set_size(header.get(),
                           static_cast<la_int64_t>(entry.content.size()));
  if (!entry.symbolic_link.empty()) {
    ::archive_entry_set_filetype(header.get(), AE_IFLNK);
    ::archive_entry_set_symlink(header.get(), entry.symbolic_link.c_str());
  }
  if (!entry.hard_link.empty()) {
    ::archive_entry_set_hardlink(header.get(), entry.hard_link.c_str());
  }
  require(::archive_write_header(out, header.get()) == ARCHIVE_OK, "header");
  if (!entry.content.empty()) {
    ::archive_write_data(out, entry.content.data(), entry.content.size());
  }
}

std::string written(const std::vector<TarEntry>& entries,
                    const std::function<void(struct archive*)>& choose) {
  const Archive out(::archive_write_new(), &::archive_write_free);
  choose(out.get());
  std::size_t room = 1 << 20;
  for (const TarEntry& entry : entries) room += 2 * entry.content.size();
  std::string bytes(room, '\0');
  std::size_t used = 0;
  require(::archive_write_open_memory(out.get(), bytes.data(), bytes.size(),
                                      &used) == ARCHIVE_OK,
          "archive_write_open_memory");
  for (const TarEntry& entry : entries) add_entry(out.get(), entry);
  require(::archive_write_close(out.get()) == ARCHIVE_OK, "close");
  bytes.resize(used);
  return bytes;
}

}  // namespace

std::string gzipped(std::string_view content) {
  z_stream stream{};
  require(::deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8,
                         Z_DEFAULT_STRATEGY) == Z_OK,
          "deflateInit2");
  std::string bytes(::deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_out = static_cast<uInt>(bytes.size());
  require(::deflate(&stream, Z_FINISH) == Z_STREAM_END, "deflate");
  bytes.resize(stream.total_out);
  ::deflateEnd(&stream);
  return bytes;
}

std::string idx_bytes(const std::vector<std::uint32_t>& shape,
                      std::string_view values) {
  std::string bytes{'\0', '\0', '\x08', static_cast<char>(shape.size())};
  for (const std::uint32_t size : shape) {
    for (const int shift : {24, 16, 8, 0}) {
      bytes.push_back(static_cast<char>(size >> shift & 0xffU));
    }
  }
  return bytes.append(values);
}

std::string png_bytes(const PngSpec& spec) {
  std::string bytes;
  png_structp png = ::png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr,
                                              nullptr, nullptr);
  png_infop info = ::png_create_info_struct(png);
  if (setjmp(png_jmpbuf(png)) != 0) std::abort();
  ::png_set_write_fn(
      png, &bytes,
      [](png_structp p, png_bytep data, std::size_t size) {
        static_cast<std::string*>(::png_get_io_ptr(p))
            ->append(reinterpret_cast<char*>(data), size);
      },
      [](png_structp) {});
  ::png_set_IHDR(png, info, spec.width, spec.height, spec.bit_depth,
                 spec.colour_type,
                 spec.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  std::vector<png_color> colours;
  for (std::size_t i = 0; i + 2 < spec.palette.size(); i += 3) {
    const auto part = [&](std::size_t j) {
      return static_cast<png_byte>(spec.palette[i + j]);
    };
    colours.push_back({part(0), part(1), part(2)});
  }
  if (!colours.empty()) {
    ::png_set_PLTE(png, info, colours.data(), static_cast<int>(colours.size()));
  }
  ::png_write_info(png, info);
  const std::size_t stride = ::png_get_rowbytes(png, info);
  std::string rows = spec.rows;
  rows.resize(stride * spec.height);
  std::vector<png_bytep> pointers;
  for (std::size_t y = 0; y < spec.height; ++y) {
    pointers.push_back(reinterpret_cast<png_bytep>(&rows[y * stride]));
  }
  ::png_write_image(png, pointers.data());
  ::png_write_end(png, nullptr);
  ::png_destroy_write_struct(&png, &info);
  return bytes;
}

std::string jpeg_bytes(std::uint32_t width, std::uint32_t height,
                       int components, std::string_view pixels, bool ycck) {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = ::jpeg_std_error(&errors);
  ::jpeg_create_compress(&jpeg);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  ::jpeg_mem_dest(&jpeg, &memory, &size);
  jpeg.image_width = width;
  jpeg.image_height = height;
  jpeg.input_components = components;
  jpeg.in_color_space = components == 1   ? JCS_GRAYSCALE
                        : components == 3 ? JCS_RGB
                                          : JCS_CMYK;
  ::jpeg_set_defaults(&jpeg);
  if (ycck) ::jpeg_set_colorspace(&jpeg, JCS_YCCK);
  ::jpeg_set_quality(&jpeg, 100, TRUE);
  ::jpeg_start_compress(&jpeg, TRUE);
  std::string copy(pixels);
  const std::size_t stride = std::size_t{width} * jpeg.input_components;
  while (jpeg.next_scanline < height) {
    auto* row = reinterpret_cast<JSAMPROW>(&copy[jpeg.next_scanline * stride]);
    ::jpeg_write_scanlines(&jpeg, &row, 1);
  }
  ::jpeg_finish_compress(&jpeg);
  ::jpeg_destroy_compress(&jpeg);
  std::string bytes(reinterpret_cast<char*>(memory), size);
  std::free(memory);
  return bytes;
}

std::string tarball(const std::vector<TarEntry>& entries) {
  return written(entries, [](struct archive* out) {
    ::archive_write_add_filter_gzip(out);
    ::archive_write_set_format_pax_restricted(out);
  });
}

std::string debian_package(const std::vector<TarEntry>& entries) {
  const auto tar_xz = [](struct archive* out) {
    ::archive_write_add_filter_xz(out);
    ::archive_write_set_format_gnutar(out);
  };
  return written(
      {{"debian-binary", "2.0\n"},
       {"control.tar.xz", written({{"./control", "x"}}, tar_xz)},
       {"data.tar.xz", written(entries, tar_xz)}},
      [](struct archive* out) { ::archive_write_set_format_ar_svr4(out); });
}

}  // namespace polyattn::data::test
