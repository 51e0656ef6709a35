// What was read, for decoding token by token: keys and values, or, for a
// polynomial, sums over its features, which do not grow (polyattn/decode.h).
//
//   DecodeCache cache(DecodeMode::kAuto);
//   torch::Tensor o = attention->forward(prompt, cache);
//   o = attention->forward(next, cache);
//
// KvCache is the plain alternative, whose keys and values can be looked at and
// cut off.
#pragma once

#include <torch/types.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "polyattn/decode.h"
#include "polyattn/nn/kv_cache.h"

namespace polyattn::nn {

// How a layer attends: with one activation, or one for each head.
struct DecodeCall {
  std::vector<Activation> activations;
  double scale = 1;
  bool center_values = false;    // as of AttentionOptions
  torch::Tensor log_decay = {};  // [G, 1] or [B, G, N]; undefined: none
};

// Of one layer. It takes its shape and type from the first step. CPU tensors
// alone, and no gradients: use it under torch::NoGradGuard.
class DecodeCache {
 public:
  explicit DecodeCache(DecodeMode mode = DecodeMode::kAuto) : mode_(mode) {}

  // Of all members of the batch.
  std::int64_t length() const { return std::max(length_, last_.length()); }
  // Tokens that are in sums.
  std::int64_t folded() const {
    return states_.empty() ? 0 : states_.front().folded(0);
  }
  std::size_t bytes() const;

  // q [B, H, N, D], k and v [B, G, N, D] -> [B, H, N, D].
  torch::Tensor step(const torch::Tensor& q, const torch::Tensor& k,
                     const torch::Tensor& v, const DecodeCall& call);

  // As that of KvCache, beside step() or in its place.
  KvCache::Rows slide(const torch::Tensor& k, const torch::Tensor& v,
                      std::int64_t window) {
    return last_.slide(k, v, window);
  }

  // As those of KvCache.
  const torch::Tensor& tail() const { return tail_; }
  void keep_tail(const torch::Tensor& tail) { tail_ = tail; }

  // Forgets everything, the shape included.
  void reset();

  // Row b of the batch becomes row index[b]: what beam search does. i64 [B'].
  void reorder(const torch::Tensor& index);

  // To go on later: bytes, u8 [n] each, and what else there is; none before
  // the first step.
  std::vector<torch::Tensor> save() const;
  static DecodeCache load(const std::vector<torch::Tensor>& saved);

 private:
  torch::Tensor attend(const torch::Tensor& q, const torch::Tensor& k,
                       const torch::Tensor& v, const DecodeCall& call);
  void load_state(const torch::Tensor& saved);
  void load_value_sum(const torch::Tensor& saved);
  void load_tail(const torch::Tensor& saved);
  void load_last(const torch::Tensor& saved, const torch::Tensor& numbers);

  DecodeMode mode_;
  std::vector<DecodeState> states_;  // one for each activation
  // If values are centred: that of all values and of as many ones,
  // [B, G, 1, D + 1] in f64. Never written to, for copies share it.
  torch::Tensor value_sum_;
  torch::Tensor tail_;  // [B, rows, channels]; the same
  KvCache last_;        // rows that slide
  std::int64_t length_ = 0;
};

}  // namespace polyattn::nn
