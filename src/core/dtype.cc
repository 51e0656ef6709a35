// Element types and the views of tensor.h: sizes, names, and conversions that
// do not depend on the compiler, the machine or its floating-point modes.
#include <bit>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>

#include "polyattn/tensor.h"

namespace polyattn {
namespace {

// The caller's memory may have any alignment and was perhaps never a T.
template <typename T>
T load_as(const void* data, std::int64_t index) {
  T value;
  const std::int64_t offset = index * std::int64_t{sizeof(T)};
  std::memcpy(&value, static_cast<const std::byte*>(data) + offset, sizeof(T));
  return value;
}

template <typename T>
void store_as(void* data, std::int64_t index, T value) {
  const std::int64_t offset = index * std::int64_t{sizeof(T)};
  std::memcpy(static_cast<std::byte*>(data) + offset, &value, sizeof(T));
}

// Drops the `shift` low bits, to nearest, ties to even. A carry out of the
// mantissa increments the exponent, which is what rounding up means.
std::uint32_t shift_to_even(std::uint32_t bits, unsigned shift) {
  const std::uint32_t half = std::uint32_t{1} << (shift - 1);
  return (bits + half - 1 + ((bits >> shift) & 1)) >> shift;
}

// The float next to `value` towards zero, with its last bit set if anything
// was lost. Rounding that to 16 bits equals rounding `value` itself, whereas
// two roundings to nearest can differ from one.
float round_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || std::isnan(value)) {
    return nearest;
  }
  std::uint32_t bits = std::bit_cast<std::uint32_t>(nearest);
  if (std::fabs(static_cast<double>(nearest)) > std::fabs(value)) --bits;
  return std::bit_cast<float>(bits | 1);
}

[[noreturn]] void refuse(DType dtype) {
  throw std::invalid_argument("[dtype] unknown element type " +
                              std::to_string(static_cast<int>(dtype)));
}

}  // namespace

std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return 4;
    case DType::kBF16:
    case DType::kF16:
      return 2;
    case DType::kF64:
      return 8;
  }
  refuse(dtype);
}

const char* name_of(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "f32";
    case DType::kBF16:
      return "bf16";
    case DType::kF16:
      return "f16";
    case DType::kF64:
      return "f64";
  }
  refuse(dtype);
}

Extents contiguous_strides(const Extents& size) {
  const std::int64_t plane = size[2] * size[3];
  return {size[1] * plane, plane, size[3], 1};
}

std::int64_t element_count(const Extents& size) {
  std::int64_t count = 1;
  for (const std::int64_t s : size) {
    if (s == 0) return 0;  // before the product of the others can overflow
  }
  for (const std::int64_t s : size) count *= s;
  return count;
}

ConstTensor view(const float* data, const Extents& size) {
  return {data, DType::kF32, size, contiguous_strides(size)};
}

ConstTensor view(const double* data, const Extents& size) {
  return {data, DType::kF64, size, contiguous_strides(size)};
}

Tensor view(float* data, const Extents& size) {
  return view(data, DType::kF32, size);
}

Tensor view(double* data, const Extents& size) {
  return view(data, DType::kF64, size);
}

Tensor view(void* data, DType dtype, const Extents& size) {
  return {data, dtype, size, contiguous_strides(size)};
}

float bf16_to_f32(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

std::uint16_t f32_to_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  // Quiet, since the payload's surviving bits may all be zero.
  if ((bits & 0x7fffffff) > 0x7f800000) {
    return static_cast<std::uint16_t>((bits >> 16) | 0x40);
  }
  return static_cast<std::uint16_t>(shift_to_even(bits, 16));
}

float f16_to_f32(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1f;
  const std::uint32_t mantissa = bits & 0x3ff;
  if (exponent == 0) {  // zero or subnormal: a whole number of 2^-24, exact
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
  }
  // The biases of the exponents differ by 127 - 15.
  const std::uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | (wide << 23) | (mantissa << 13));
}

std::uint16_t f32_to_f16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000;
  const std::uint32_t magnitude = bits & 0x7fffffff;
  const std::uint32_t exponent = magnitude >> 23;
  std::uint32_t half = 0;
  if (magnitude > 0x7f800000) {  // NaN: quiet, keep the top of the payload
    half = 0x7e00 | ((magnitude >> 13) & 0x3ff);
  } else if (exponent >= 127 + 16) {
    half = 0x7c00;
  } else if (exponent >= 127 - 14) {
    half = shift_to_even(magnitude - (112u << 23), 13);
  } else if (exponent >= 127 - 25) {  // subnormal: count units of 2^-24
    const std::uint32_t mantissa = (magnitude & 0x7fffff) | 0x800000;
    half = shift_to_even(mantissa, 126 - exponent);
  }
  return static_cast<std::uint16_t>(sign | half);
}

double load_element(const void* data, DType dtype, std::int64_t index) {
  switch (dtype) {
    case DType::kF32:
      return static_cast<double>(load_as<float>(data, index));
    case DType::kBF16:
      return bf16_to_f32(load_as<std::uint16_t>(data, index));
    case DType::kF16:
      return f16_to_f32(load_as<std::uint16_t>(data, index));
    case DType::kF64:
      return load_as<double>(data, index);
  }
  refuse(dtype);
}

void store_element(void* data, DType dtype, std::int64_t index, double value) {
  switch (dtype) {
    case DType::kF32:
      return store_as(data, index, static_cast<float>(value));
    case DType::kBF16:
      return store_as(data, index, f32_to_bf16(round_to_odd(value)));
    case DType::kF16:
      return store_as(data, index, f32_to_f16(round_to_odd(value)));
    case DType::kF64:
      return store_as(data, index, value);
  }
  refuse(dtype);
}

}  // namespace polyattn
