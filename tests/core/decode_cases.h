// What the tests of decoding share: the tokens of an instance, read in pieces.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/compare_outputs.h"
#include "core/kernel_cases.h"
#include "core/random_inputs.h"
#include "polyattn/decode.h"
#include "polyattn/parallel.h"

namespace polyattn::test {

using Numbers = std::vector<std::int64_t>;

inline DecodeShape shape_of(const Case& c) {
  return {c.batch, c.heads, c.kv_heads, c.d, c.e};
}

inline DecodeOptions options_of(const Case& c, DecodeMode mode) {
  return {.activation = Activation::parse(c.formula),
          .scale = c.scale,
          .mode = mode,
          .compute = c.compute,
          .storage = c.dtype};
}

inline DecodeState new_state(const Case& c,
                             DecodeMode mode = DecodeMode::kSums) {
  return {shape_of(c), options_of(c, mode)};
}

// A case of `tokens` tokens, each of which sees those before it.
inline Case text_case(const std::string& formula, std::int64_t tokens) {
  return {
      .n = tokens, .m = tokens, .formula = formula, .causal = Causal::kFirst};
}

inline Tensor tokens_of(const Buffer& b, std::int64_t first,
                        std::int64_t count) {
  Tensor t = b.tensor;
  t.data = static_cast<std::byte*>(t.data) +
           first * t.stride[2] * static_cast<std::int64_t>(size_of(t.dtype));
  t.size[2] = count;
  return t;
}

inline DecodeInputs inputs_of(const Instance& instance, std::int64_t first,
                              std::int64_t count) {
  return {.q = tokens_of(instance.q, first, count),
          .k = tokens_of(instance.k, first, count),
          .v = tokens_of(instance.v, first, count)};
}

// An output for all tokens of the instance, NaN at first.
inline Buffer output_of(const Instance& instance, DType dtype) {
  return Buffer(dtype, instance.d_o.tensor.size, instance.d_o.tensor.stride);
}

// Reads pieces of these lengths from token `first` on.
inline void read_pieces(DecodeState& state, const Instance& instance,
                        std::int64_t first, const Numbers& pieces, Buffer& o) {
  SerialParallel serial;
  for (const std::int64_t count : pieces) {
    state.step(inputs_of(instance, first, count), tokens_of(o, first, count),
               serial);
    first += count;
  }
}

// `total` tokens, `piece` at a time.
inline Numbers pieces_of(std::int64_t total, std::int64_t piece) {
  Numbers pieces;
  for (; total > 0; total -= pieces.back())
    pieces.push_back(std::min(piece, total));
  return pieces;
}

}  // namespace polyattn::test
