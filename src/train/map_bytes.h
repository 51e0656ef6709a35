// What attention maps are kept in: a byte a weight, so many in all.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "base/json_text.h"

namespace polyattn::train {

inline constexpr std::int64_t kMapBytes = 96 * 1024;

// {scale, values} of a matrix: values are the base64 of signed bytes, row by
// row, and a weight is byte * scale / 127.
base::Json map_json(const torch::Tensor& weights);

// `count` of the numbers below `all`, evenly spread, with first and last; one
// at least.
std::vector<std::int64_t> spread(std::int64_t count, std::int64_t all);

}  // namespace polyattn::train
