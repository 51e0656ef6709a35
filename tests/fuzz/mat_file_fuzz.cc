// Any bytes are a file of MATLAB or a DataError, never anything else. Of an
// input that begins with 'z' the rest is compressed into one.
#include <zlib.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "data/label_files.h"
#include "data/sets.h"

namespace {

using namespace polyattn::data;

void require(bool condition, const char* message) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", message);
  std::abort();
}

std::string file_of(std::string_view content) {
  std::string file(124, ' ');
  file += std::string("\0\1IM", 4);
  if (content.empty() || content[0] != 'z') return file + std::string(content);
  content.remove_prefix(1);
  uLongf size = ::compressBound(content.size());
  std::vector<Bytef> packed(size);
  ::compress(packed.data(), &size,
             reinterpret_cast<const Bytef*>(content.data()), content.size());
  file += std::string("\x0f\0\0\0", 4);
  for (int i = 0; i < 4; ++i) file += static_cast<char>(size >> (8 * i));
  return file.append(reinterpret_cast<const char*>(packed.data()), size);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const std::string file = file_of({reinterpret_cast<const char*>(data), size});
  try {
    const auto names =
        parse_kit_classes(std::as_bytes(std::span(file)), "input");
    require(!names.empty(), "nothing");
    for (const std::string& name : names) {
      require(!name.empty() && name.find('/') == std::string::npos,
              "a name that leads elsewhere");
    }
  } catch (const DataError& error) {
    require(std::string_view(error.what()).starts_with("input"), error.what());
  }
  return 0;
}
