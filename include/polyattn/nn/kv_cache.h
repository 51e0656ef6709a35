// The keys and values of what was seen, for decoding token by token.
//
//   KvCache cache;
//   torch::Tensor o = attention->forward(prompt, cache);
//   o = attention->forward(next, cache);
#pragma once

#include <torch/types.h>

#include <cstdint>

namespace polyattn::nn {

// Keys and values [B, G, rows, D], kept in storage that is doubled when it is
// full, or those of the last rows alone. It passes on no gradients: fill it
// under torch::NoGradGuard.
class KvCache {
 public:
  struct Rows {
    torch::Tensor k, v;
  };

  // Of all rows that it was given.
  std::int64_t length() const { return length_; }
  std::int64_t capacity() const { return k_.defined() ? k_.size(2) : 0; }
  std::size_t bytes() const;

  // Views [B, G, rows, D] of the storage, undefined before the first append.
  // The next append, reset or truncate may change what they show.
  torch::Tensor keys() const;
  torch::Tensor values() const;

  // k and v [B, G, N, D].
  void append(const torch::Tensor& k, const torch::Tensor& v);

  // Returns what rows see of which each sees the last `window` rows, its own
  // included: the rows kept before, then k and v. No more than window - 1 rows
  // are kept for the next time, so that memory does not grow with the text.
  // Nothing is written to the storage of a copy.
  Rows slide(const torch::Tensor& k, const torch::Tensor& v,
             std::int64_t window);
  // 0 unless rows slide.
  std::int64_t window() const { return window_; }

  // Rows that slide, as keys() and values() of one of `length` had them.
  static KvCache sliding(const Rows& kept, std::int64_t window,
                         std::int64_t length);

  // Forgets everything, the shape included.
  void reset();

  // The last rows of a short convolution (polyattn/nn/short_conv.h), or
  // undefined; kept beside keys and values for whoever appends them.
  const torch::Tensor& tail() const { return tail_; }
  void keep_tail(const torch::Tensor& tail) { tail_ = tail; }

  // Keeps the first `length` rows; all or none if there is a tail, for that
  // of earlier rows is not known, or if rows slide.
  void truncate(std::int64_t length);

  // Row b of the batch becomes row index[b]: what beam search does. i64 [B'].
  void reorder(const torch::Tensor& index);

 private:
  void check(const torch::Tensor& k, const torch::Tensor& v) const;
  void reserve(std::int64_t capacity, const torch::Tensor& like);

  torch::Tensor k_;  // [B, G, capacity, D]
  torch::Tensor v_;
  torch::Tensor tail_;
  std::int64_t length_ = 0;
  std::int64_t rows_ = 0;  // in storage: all, or those of the window
  std::int64_t window_ = 0;
};

}  // namespace polyattn::nn
