// Sizes of tensors, in numbers that cannot overflow.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "polyattn/io/safetensors.h"

namespace polyattn::io {

// Bytes of a tensor with this shape, whose dimensions are not negative. None
// if its elements, with 1 in the place of each 0, need more than 63 bits.
std::optional<std::uint64_t> byte_count(TensorType type,
                                        std::span<const std::int64_t> shape);

// "[2,3]", as JSON has it.
std::string to_string(std::span<const std::int64_t> numbers);

// "BOOL, U8, ..."
std::string all_type_names();

}  // namespace polyattn::io
