// The keys and values of what was seen, for decoding token by token.
//
//   KvCache cache;
//   torch::Tensor o = attention->forward(prompt, cache);
//   o = attention->forward(next, cache);
#pragma once

#include <torch/types.h>

#include <cstdint>

namespace polyattn::nn {

// Keys and values [B, G, length, D], kept in storage that is doubled when it is
// full. It passes on no gradients: fill it under torch::NoGradGuard.
class KvCache {
 public:
  std::int64_t length() const { return length_; }
  std::int64_t capacity() const { return k_.defined() ? k_.size(2) : 0; }

  // Views [B, G, length, D] of the storage, undefined before the first append.
  // The next append, reset or truncate may change what they show.
  torch::Tensor keys() const;
  torch::Tensor values() const;

  // k and v [B, G, N, D].
  void append(const torch::Tensor& k, const torch::Tensor& v);

  // Forgets everything, the shape included.
  void reset();

  // The last rows of a short convolution (polyattn/nn/short_conv.h), or
  // undefined; kept beside keys and values for whoever appends them.
  const torch::Tensor& tail() const { return tail_; }
  void keep_tail(const torch::Tensor& tail) { tail_ = tail; }

  // Keeps the first `length` rows; all or none if there is a tail, for that
  // of earlier rows is not known.
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
};

}  // namespace polyattn::nn
