// Any bytes either parse as a safetensors file or throw SafetensorsError, never
// anything else; what parses lies within the file, without overlaps and holes;
// and written again it parses to the same.
//
// The first byte of the input, modulo 3, says what the others are:
//   0  decisions that make a file which is right, or nearly: bytes at random
//      would never make one. If it is right then it must be accepted.
//   1  how many bytes of data there are, in one byte, then a header
//   2  a whole file
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "polyattn/io/safetensors.h"

namespace {

using polyattn::io::SafetensorsError;
using polyattn::io::SafetensorsFile;
using polyattn::io::TensorView;
using Bytes = std::span<const std::byte>;

void require(bool condition, const char* message) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", message);
  std::abort();
}

// Where the header ends. Only for files that were accepted.
const std::byte* data_of(Bytes file) {
  std::size_t length = 0;
  for (std::size_t i = 8; i-- > 0;) {
    length = length << 8 | std::to_integer<std::size_t>(file[i]);
  }
  return file.data() + 8 + length;
}

void check_views(const SafetensorsFile& parsed, Bytes file) {
  const std::byte* covered = data_of(file);
  for (const TensorView& tensor : parsed.tensors()) {
    require(tensor.bytes.data() == covered, "a view is not where it should be");
    covered += tensor.bytes.size();
    const auto count = std::accumulate(
        tensor.shape.begin(), tensor.shape.end(),
        static_cast<std::int64_t>(size_of(tensor.type)), std::multiplies<>());
    require(std::cmp_equal(tensor.bytes.size(), count), "size is not shape");
    require(parsed.find(tensor.name) == &tensor, "find() finds another");
  }
  require(covered == file.data() + file.size(), "data is not covered");
}

void check_round_trip(const SafetensorsFile& parsed) {
  std::vector<std::byte> file;
  try {
    file = serialize_safetensors(parsed.tensors(), parsed.metadata());
    const auto again = SafetensorsFile::parse(file);
    check_views(again, file);
    require(again.metadata() == parsed.metadata(), "metadata differs");
    require(again.tensors().size() == parsed.tensors().size(), "count differs");
    for (const TensorView& tensor : parsed.tensors()) {
      const TensorView* const other = again.find(tensor.name);
      require(other != nullptr, "a tensor is lost");
      require(other->type == tensor.type, "type differs");
      require(other->shape == tensor.shape, "shape differs");
      require(std::equal(other->bytes.begin(), other->bytes.end(),
                         tensor.bytes.begin(), tensor.bytes.end()),
              "bytes differ");
    }
    require(serialize_safetensors(again.tensors(), again.metadata()) == file,
            "writing is not stable");
  } catch (const SafetensorsError& error) {
    require(false, error.what());
  }
}

void check_error(const SafetensorsError& error) {
  const std::string_view what = error.what();
  require(what.starts_with("[safetensors] memory: "), "message without source");
  // Two texts of 123 bytes at most, with six for each byte that is escaped.
  require(what.size() < 2000, "a message of any length");
  require(std::all_of(what.begin(), what.end(),
                      [](char c) { return c >= ' ' && c <= '~'; }),
          "a message that is not plain text");
}

void check_file(Bytes file, bool must_parse = false) {
  try {
    const auto parsed = SafetensorsFile::parse(file);
    check_views(parsed, file);
    check_round_trip(parsed);
  } catch (const SafetensorsError& error) {
    check_error(error);
    require(!must_parse, error.what());
  }
}

std::vector<std::byte> file_around(std::string_view header,
                                   std::size_t data_size) {
  std::vector<std::byte> file(8);
  for (std::size_t i = 0; i < 8; ++i) {
    file[i] = static_cast<std::byte>(header.size() >> (8 * i) & 0xff);
  }
  const Bytes text = std::as_bytes(std::span(header));
  file.insert(file.end(), text.begin(), text.end());
  for (std::size_t i = 0; i < data_size; ++i) {
    file.push_back(static_cast<std::byte>(i));
  }
  return file;
}

// A file that follows from decisions, each of which is a byte of the input.
class Builder {
 public:
  explicit Builder(Bytes decisions) : decisions_(decisions) {}

  void check() {
    std::string header = "{";
    if (choose(4) == 0) header += R"("__metadata__":{"k":"v","\u00e9":""})";
    std::size_t data_size = 0;
    for (std::size_t left = choose(6); left > 0; --left) {
      if (header.size() > 1) header += ',';
      header += entry(data_size);
    }
    header += "}" + std::string(choose(9), ' ');
    data_size = deviate(data_size);
    check_file(file_around(header, data_size), /*must_parse=*/right_);
  }

 private:
  // A number below `count`; 0 when the input is used up.
  std::size_t choose(std::size_t count) {
    if (decisions_.empty()) return 0;
    const auto byte = std::to_integer<std::size_t>(decisions_.front());
    decisions_ = decisions_.subspan(1);
    return byte % count;
  }

  // The number, or seldom the one below or above it.
  std::size_t deviate(std::size_t number) {
    const std::size_t choice = choose(64);
    if (choice != 62 && choice != 63) return number;
    right_ = false;
    return number + (choice == 62 ? 1 : number == 0 ? 0 : -1);
  }

  // The next tensor, behind `data_size` bytes of others.
  std::string entry(std::size_t& data_size) {
    const std::string name(1, static_cast<char>('a' + choose(26)));
    right_ = names_.insert(name).second && right_;
    const auto type = static_cast<polyattn::io::TensorType>(choose(13));
    std::size_t size = size_of(type);
    std::string shape;
    for (std::size_t rank = choose(4); rank > 0; --rank) {
      const std::size_t dimension = choose(5);
      if (!shape.empty()) shape += ',';
      shape += std::to_string(dimension);
      size *= dimension;
    }
    const std::size_t begin = data_size;
    data_size += size;
    return "\"" + name + "\":{\"dtype\":\"" + std::string(name_of(type)) +
           "\",\"shape\":[" + shape + "],\"data_offsets\":[" +
           std::to_string(deviate(begin)) + "," +
           std::to_string(deviate(data_size)) + "]}";
  }

  Bytes decisions_;
  std::set<std::string> names_;
  bool right_ = true;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  if (size < 2) return 0;
  const Bytes input = std::as_bytes(std::span(data, size)).subspan(1);
  if (data[0] % 3 == 0) {
    Builder(input).check();
  } else if (data[0] % 3 == 1) {
    const std::string_view header(reinterpret_cast<const char*>(data) + 2,
                                  size - 2);
    check_file(file_around(header, data[1]));
  } else {
    // A copy, so that the sanitizer sees what is read beyond its end.
    check_file(std::vector(input.begin(), input.end()));
  }
  return 0;
}
