// Attention token by token, for generating text: each new token sees all that
// came before it and itself.
//
//   DecodeState state(shape, {.activation = Activation::parse("x^2/sqrt(N)")});
//   state.step({q, k, v}, o, parallel);  // a prefix of many tokens, or one
//
// The result is that of attention_forward on the whole sequence with causality,
// to rounding. Two things can stand for the tokens that were read:
//
// - a cache of their keys and values, for every activation: time and memory of
//   a step grow with the text;
// - for a polynomial, the sums F(K)^T V over its features (attention.h): time
//   and memory of a step do not depend on the length of the text. The last few
//   tokens wait in a cache, and are folded into the sums together: that is
//   faster than one at a time, and rounding then grows with the number of folds
//   alone.
//
// Tokens may come with decay (attention.h): a factor by which all that was read
// before them fades. A polynomial only.
//
// In a sliding window, which takes every activation, a token sees the last ones
// alone: a cache of no more tokens than it takes, whatever the length.
//
// The members of a batch may have different lengths. A state is a value: to
// copy it is to fork the text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "polyattn/activation.h"
#include "polyattn/parallel.h"
#include "polyattn/tensor.h"

namespace polyattn {

struct DecodeShape {
  std::int64_t batch = 1;
  std::int64_t heads = 1;     // H
  std::int64_t kv_heads = 1;  // G: H is a multiple of it
  std::int64_t d = 0;         // width of q and k
  std::int64_t e = 0;         // width of v

  bool operator==(const DecodeShape&) const = default;
};

enum class DecodeMode : std::uint8_t {
  kAuto,  // a cache while that is smaller than the sums; a cache for good where
          // there are no sums
  kCache,  // a cache
  kSums,   // sums from the first fold on; a polynomial only
};

struct DecodeOptions {
  Activation activation = {};
  std::optional<double> scale = {};  // default: 1/sqrt(D)
  DecodeMode mode = DecodeMode::kAuto;
  DType compute = DType::kF32;  // kF32 or kF64
  DType storage = DType::kF32;  // of the cached keys and values
  // Tokens that one sees, its own included; 0: all. Not with kSums or decay.
  std::int64_t window = 0;
};

struct DecodeInputs {
  ConstTensor q;  // [B, H, T, D]
  ConstTensor k;  // [B, G, T, D]
  ConstTensor v;  // [B, G, T, E]
  // Empty, or how many of the T tokens belong to each member of the batch: 0 to
  // T. What stands in the output behind them is left alone.
  std::span<const std::int64_t> counts = {};
  // [B, G, T, 1], where a size of 1 is repeated; without it nothing fades.
  std::optional<ConstTensor> log_decay = {};
};

class DecodeState {
 public:
  // Throws std::invalid_argument.
  DecodeState(const DecodeShape& shape, const DecodeOptions& options);

  // Reads the tokens of k and v and gives o [B, H, T, E]: token t sees what was
  // read before and tokens 0 .. t. Throws std::invalid_argument before anything
  // is changed, and std::overflow_error if sums are no longer finite though
  // the inputs are: the state is of no use then.
  void step(const DecodeInputs& inputs, const Tensor& o, Parallel& parallel);

  // Reads tokens of which no result is wanted, k [B, G, T, D] and v
  // [B, G, T, E], as step() would: a prefix without the cost of its queries.
  // Sums that overflow are noticed by the next step().
  void append(const ConstTensor& k, const ConstTensor& v,
              std::span<const std::int64_t> counts, Parallel& parallel,
              const std::optional<ConstTensor>& log_decay = {});

  const DecodeShape& shape() const { return shape_; }
  const DecodeOptions& options() const { return options_; }
  // Tokens that a member has read.
  std::int64_t length(std::int64_t member) const;
  // Of these, how many are in the sums; in a window none.
  std::int64_t folded(std::int64_t member) const;
  // What the state takes.
  std::size_t bytes() const;

  // Member b becomes a copy of what member index[b] was: for beams. The batch
  // takes the size of the index.
  void select(std::span<const std::int64_t> index);

  // Everything, to go on later or elsewhere. load() trusts nothing: it throws
  // std::invalid_argument with what is wrong.
  std::vector<std::byte> save() const;
  static DecodeState load(std::span<const std::byte> bytes);

 private:
  // Cached keys [G, capacity, D] and values [G, capacity, E], and sums
  // [G, features, width]; empty until they are needed.
  struct Member {
    std::int64_t length = 0;
    std::int64_t cached = 0;  // the last ones
    std::int64_t capacity = 0;
    std::vector<std::byte> k, v, sums;
    bool spoilt = false;  // tokens in the sums were not finite
    // Once a token came with decay: N of a row that ends with the last token in
    // the sums [G], and log_decay of the cached tokens [cached, G].
    std::vector<double> n, log_decay;
  };
  class Step;
  class Reader;

  void check_options() const;
  void measure();

  DecodeShape shape_;
  DecodeOptions options_;
  double scale_ = 1;
  std::int64_t features_ = 0;  // 0 if there are no sums
  std::int64_t width_ = 0;     // of a row of the sums
  std::int64_t fold_ = 0;      // tokens that are folded together
  std::int64_t limit_ = 0;     // cached tokens beyond which sums are smaller
  std::int64_t room_ = 0;      // in a window: the most cached tokens
  std::vector<Member> members_;
};

}  // namespace polyattn
