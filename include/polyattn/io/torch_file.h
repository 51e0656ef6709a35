// Weights as torch.save writes them since torch 1.6 (.pth, .pt, .bin): a zip
// archive with a pickle of the names and shapes, and a file for each storage.
//
// Pickles are programs. This reader runs none: of the opcodes it knows those
// that torch.save writes, and of the functions that a pickle may name those
// that make a tensor, a parameter or an OrderedDict. Whatever else is named is
// refused, by its name.
//
// The reader trusts nothing. It refuses archives with compressed, encrypted,
// overlapping or equally named files, pickles above kMaxPickleBytes, storages
// whose size is not what the pickle says, and tensors that reach beyond their
// storage or have more elements than it.
//
// What it finds is a dictionary of tensors by name. It may lie under `model`,
// `state_dict` or `model_state_dict` of another; what else lies there
// (optimizers, epochs) is not read. If all names begin with `module.`, as after
// DataParallel, that is taken away.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "polyattn/io/safetensors.h"

namespace polyattn::io {

inline constexpr std::uint64_t kMaxPickleBytes = std::uint64_t{1} << 24;

// What tensors are views of. The bytes belong to the file and need not be
// aligned.
struct TorchStorage {
  std::string key;
  TensorType type = TensorType::kF32;
  std::span<const std::byte> bytes;
};

// Strides and the offset count elements of the storage.
struct TorchTensor {
  std::string name;
  std::size_t storage = 0;  // index into storages()
  std::int64_t offset = 0;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
};

// what() reads "[torch_file] source: message". Text that comes from the file is
// quoted, shortened and in ASCII.
class TorchFileError : public std::runtime_error {
 public:
  TorchFileError(std::string_view source, std::string_view message);
};

// Whether a file is one for this reader: by its first bytes, and if these say
// nothing, by its extension. What is called .safetensors never is.
bool is_torch_file(const std::filesystem::path& path);

// The views of a file that is mapped into memory, as those of SafetensorsFile.
class TorchFile {
 public:
  // Throws TorchFileError if the file cannot be read or breaks a rule.
  explicit TorchFile(const std::filesystem::path& path);

  // The same for a file in memory, which must outlive the result. Messages
  // call it `source`.
  static TorchFile parse(std::span<const std::byte> file,
                         std::string_view source = "memory");

  TorchFile(TorchFile&& other) noexcept;
  TorchFile& operator=(TorchFile&& other) noexcept;
  ~TorchFile();

  // In the order of the file.
  const std::vector<TorchTensor>& tensors() const { return tensors_; }

  // Those of which there is a tensor.
  const std::vector<TorchStorage>& storages() const { return storages_; }

 private:
  TorchFile();
  void read(std::span<const std::byte> file, std::string_view source);

  std::unique_ptr<const base::MappedFile>
      mapping_;  // null if parsed from memory
  std::vector<TorchTensor> tensors_;
  std::vector<TorchStorage> storages_;
};

}  // namespace polyattn::io
