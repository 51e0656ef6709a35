// Views of memory that belongs to the caller: a pointer, an element type, four
// sizes and four strides (in elements). No ownership, no reference counts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace polyattn {

enum class DType : std::uint8_t { kF32, kBF16, kF16, kF64 };

std::size_t size_of(DType dtype);
const char* name_of(DType dtype);  // "f32", "bf16", "f16", "f64"

using Extents = std::array<std::int64_t, 4>;

// Strides of a dense row-major array of this size.
Extents contiguous_strides(const Extents& size);

// Number of elements.
std::int64_t element_count(const Extents& size);

struct ConstTensor {
  const void* data = nullptr;
  DType dtype = DType::kF32;
  Extents size{};
  Extents stride{};
};

struct Tensor {
  void* data = nullptr;
  DType dtype = DType::kF32;
  Extents size{};
  Extents stride{};

  // NOLINTNEXTLINE(google-explicit-constructor): read access to a tensor
  operator ConstTensor() const { return {data, dtype, size, stride}; }
};

// true (any non-zero byte) = the key may be seen.
struct ConstMask {
  const std::uint8_t* data = nullptr;
  Extents size{};
  Extents stride{};
};

// Dense row-major views.
ConstTensor view(const float* data, const Extents& size);
ConstTensor view(const double* data, const Extents& size);
Tensor view(float* data, const Extents& size);
Tensor view(double* data, const Extents& size);
Tensor view(void* data, DType dtype, const Extents& size);

// The 16-bit types as bit patterns. Rounding is to nearest, ties to even;
// NaN stays NaN, values beyond the range become infinite.
float bf16_to_f32(std::uint16_t bits);
std::uint16_t f32_to_bf16(float value);
float f16_to_f32(std::uint16_t bits);
std::uint16_t f32_to_f16(float value);

// One element, by its index counted in elements from data.
double load_element(const void* data, DType dtype, std::int64_t index);
void store_element(void* data, DType dtype, std::int64_t index, double value);

}  // namespace polyattn
