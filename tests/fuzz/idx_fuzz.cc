// Any bytes either parse as an idx array or throw DataError, never anything
// else; what parses has as many values as its shape says. The first byte of the
// input says whether the others are the array or a gzipped one.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "data/gzip.h"
#include "data/idx.h"

namespace {

using Bytes = std::span<const std::byte>;
using polyattn::data::DataError;

void require(bool condition, const char* message) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", message);
  std::abort();
}

void check(Bytes bytes) {
  const polyattn::data::IdxArray array =
      polyattn::data::parse_idx(bytes, "input");
  std::size_t count = 1;
  for (const std::size_t size : array.shape) count *= size;
  require(count == array.values.size(), "the shape is not the values'");
  require(count > 0 && !array.shape.empty(), "an empty array was accepted");
  require(array.values.data() + count == bytes.data() + bytes.size(),
          "the values are not the end of the bytes");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  constexpr std::uint64_t kMaxBytes = 1 << 16;
  if (size == 0) return 0;
  const Bytes bytes = std::as_bytes(std::span(data + 1, size - 1));
  try {
    if (data[0] % 2 == 0) {
      check(bytes);
    } else {
      const std::vector<std::byte> unpacked =
          polyattn::data::gunzip(bytes, kMaxBytes, "input");
      require(unpacked.size() <= kMaxBytes, "more than the limit");
      check(unpacked);
    }
  } catch (const DataError& error) {
    require(std::string(error.what()).starts_with("input"), error.what());
  }
  return 0;
}
