// Files of tensors in the safetensors format: eight bytes that hold the length
// of the header (little-endian), the header in JSON, then the data.
//
//   {"__metadata__": {"key": "text"},
//    "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}
//
// Elements are little-endian and row-major. The format does not promise any
// alignment: read elements with std::memcpy, never through a cast pointer. The
// bytes of BOOL may hold other values than 0 and 1: compare them with 0.
//
// The reader trusts nothing. It refuses headers above kMaxHeaderBytes or with
// a key twice, unknown types, entries with a key too few or too many, shapes
// whose size does not fit 63 bits (a dimension of 0 counts as 1 there, so that
// strides fit too), and data that the tensors do not cover exactly: without
// overlaps, holes, or bytes before the first or behind the last of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace polyattn::base {
class MappedFile;
}  // namespace polyattn::base

namespace polyattn::io {

inline constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;

// In the order of their alignment. Within one alignment the order is that of
// the reference implementation; the writer depends on both.
enum class TensorType : std::uint8_t {
  kBool,
  kU8,
  kI8,
  kI16,
  kU16,
  kF16,
  kBF16,
  kI32,
  kU32,
  kF32,
  kF64,
  kI64,
  kU64,
};

// Both throw std::invalid_argument for what is no enumerator.
std::size_t size_of(TensorType type);       // bytes of an element
std::string_view name_of(TensorType type);  // "BOOL", "U8", ..., "U64"

// The type of this name, which is case-sensitive.
std::optional<TensorType> parse_tensor_type(std::string_view name);

// A tensor whose bytes belong to someone else.
struct TensorView {
  std::string name;
  TensorType type = TensorType::kF32;
  std::vector<std::int64_t> shape;  // empty: a scalar
  std::span<const std::byte> bytes;
};

using Metadata = std::map<std::string, std::string, std::less<>>;

// what() reads "[safetensors] source: message". The source is a path; text
// that comes from the file is quoted, shortened and in ASCII.
class SafetensorsError : public std::runtime_error {
 public:
  SafetensorsError(std::string_view source, std::string_view message);
};

// The views of a file that is mapped into memory, read-only: pages are read
// when they are touched. Views point into the mapping. They live as long as
// the SafetensorsFile does, or the one it was moved to.
//
// If another process shortens the file meanwhile, touching what is gone ends
// the program (SIGBUS), as with every mapping. Replacing the file by renaming,
// as write_safetensors() does, is harmless: the mapping keeps the old one.
class SafetensorsFile {
 public:
  // Throws SafetensorsError if the file cannot be read or breaks a rule.
  explicit SafetensorsFile(const std::filesystem::path& path);

  // The same for a file in memory, which must outlive the result. Messages
  // call it `source`.
  static SafetensorsFile parse(std::span<const std::byte> file,
                               std::string_view source = "memory");

  SafetensorsFile(SafetensorsFile&& other) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&& other) noexcept;
  ~SafetensorsFile();

  // In the order of their data; empty ones at the same place by name.
  const std::vector<TensorView>& tensors() const { return tensors_; }

  // Null if there is none of this name.
  const TensorView* find(std::string_view name) const;

  const Metadata& metadata() const { return metadata_; }

 private:
  SafetensorsFile();
  void read(std::span<const std::byte> file, std::string_view source);

  std::unique_ptr<const base::MappedFile>
      mapping_;  // null if parsed from memory
  std::vector<TensorView> tensors_;
  std::vector<std::size_t> by_name_;  // indices into tensors_
  Metadata metadata_;
};

// Writes the file whole or not at all: beside it, then renames. On error the
// old file is intact. Equal tensors and metadata give equal bytes, in whatever
// order they come: wider types first, then by name, from a multiple of 8, so
// that every tensor is aligned in the file. Throws SafetensorsError for what
// the reader would refuse, and if the file cannot be written.
void write_safetensors(const std::filesystem::path& path,
                       std::span<const TensorView> tensors,
                       const Metadata& metadata = {});

// The bytes that write_safetensors() would write.
std::vector<std::byte> serialize_safetensors(
    std::span<const TensorView> tensors, const Metadata& metadata = {});

}  // namespace polyattn::io
