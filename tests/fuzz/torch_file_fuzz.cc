// Any bytes either parse as a file of torch.save or throw TorchFileError, never
// anything else; of what parses, every tensor lies in its storage and every
// storage in the file.
//
// The first byte of the input, modulo 3, says what the others are:
//   0  the pickle of an archive that is right
//   1  changes to a file that is right: places, of two bytes, and values
//   2  a whole file
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "io/torch_file_bytes.h"

namespace {

using polyattn::io::TorchFile;
using polyattn::io::TorchFileError;
using polyattn::io::TorchStorage;
using polyattn::io::TorchTensor;
namespace made = polyattn::io::test;

__extension__ using Wide = __int128;  // two factors and a sum never overflow

void require(bool condition, const char* message) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", message);
  std::abort();
}

void check_tensor(const TorchTensor& tensor, const TorchStorage& storage) {
  const auto elements = static_cast<Wide>(storage.bytes.size() /
                                          polyattn::io::size_of(storage.type));
  require(tensor.shape.size() == tensor.strides.size(), "ranks differ");
  Wide last = tensor.offset, count = 1;
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    require(tensor.shape[i] >= 0 && tensor.strides[i] >= 0, "negative sizes");
    last += Wide{tensor.shape[i] - 1} * tensor.strides[i];
    count *= tensor.shape[i];
    require(count <= elements, "more elements than the storage has");
  }
  require(tensor.offset >= 0 && tensor.offset <= elements, "a wrong offset");
  require(count == 0 || last < elements, "the storage ends before the tensor");
}

void check_error(const TorchFileError& error) {
  const std::string_view what = error.what();
  require(what.starts_with("[torch_file] memory: "), "message without source");
  // Texts of 123 bytes at most, with six for each byte that is escaped.
  require(what.size() < 3000, "a message of any length");
  require(std::all_of(what.begin(), what.end(),
                      [](char c) { return c >= ' ' && c <= '~'; }),
          "a message that is not plain text");
}

void check_file(std::string_view file) {
  const auto bytes = made::bytes_of(file);
  try {
    const TorchFile parsed = TorchFile::parse(bytes);
    for (const TorchStorage& storage : parsed.storages()) {
      require(storage.bytes.data() >= bytes.data() &&
                  storage.bytes.data() + storage.bytes.size() <=
                      bytes.data() + bytes.size(),
              "a storage is not in the file");
    }
    for (const TorchTensor& tensor : parsed.tensors()) {
      check_tensor(tensor, parsed.storages().at(tensor.storage));
    }
  } catch (const TorchFileError& error) {
    check_error(error);
  }
}

std::string changed(std::string_view changes) {
  std::string file = made::zip_of(
      {{"a/data.pkl",
        made::pickle_of(made::dict_op({{"w", made::tensor_op()}}))},
       {"a/data/0", std::string(24, '\1')}},
      {.zip64 = !changes.empty() && changes.back() % 2 == 0});
  for (; changes.size() >= 3; changes.remove_prefix(3)) {
    const auto place = static_cast<unsigned char>(changes[0]) +
                       256U * static_cast<unsigned char>(changes[1]);
    file[place % file.size()] = changes[2];
  }
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  if (size < 1) return 0;
  // A copy, so that the sanitizer sees what is read beyond its end.
  const std::string rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 3 == 0) {
    check_file(made::zip_of(
        {{"a/data.pkl", rest}, {"a/data/0", std::string(24, '\1')}}));
  } else {
    check_file(data[0] % 3 == 1 ? changed(rest) : rest);
  }
  return 0;
}
