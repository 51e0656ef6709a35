#include "polyattn/nn/kv_cache.h"

#include <torch/utils.h>

#include <algorithm>

namespace polyattn::nn {

torch::Tensor KvCache::keys() const {
  return k_.defined() ? k_.narrow(2, 0, length_) : k_;
}

torch::Tensor KvCache::values() const {
  return v_.defined() ? v_.narrow(2, 0, length_) : v_;
}

void KvCache::check(const torch::Tensor& k, const torch::Tensor& v) const {
  TORCH_CHECK(k.dim() == 4, "[KvCache] keys of size ", k.sizes(),
              " are not [B, G, N, D]");
  TORCH_CHECK(v.sizes() == k.sizes(), "[KvCache] values of size ", v.sizes(),
              " != ", k.sizes(), " of keys");
  TORCH_CHECK(v.scalar_type() == k.scalar_type(), "[KvCache] values of type ",
              v.scalar_type(), " != ", k.scalar_type(), " of keys");
  TORCH_CHECK(
      !k.requires_grad() && !v.requires_grad(),
      "[KvCache] keys or values want a gradient, which a cache does not "
      "pass on: decode under torch::NoGradGuard");
  if (!k_.defined()) return;
  TORCH_CHECK(k.size(0) == k_.size(0) && k.size(1) == k_.size(1) &&
                  k.size(3) == k_.size(3),
              "[KvCache] keys of size ", k.sizes(), " do not follow on ",
              keys().sizes());
  TORCH_CHECK(k.scalar_type() == k_.scalar_type(), "[KvCache] keys of type ",
              k.scalar_type(), " do not follow on ", k_.scalar_type());
  TORCH_CHECK(k.device() == k_.device(), "[KvCache] keys on ", k.device(),
              " do not follow on ", k_.device());
}

void KvCache::reserve(std::int64_t capacity, const torch::Tensor& like) {
  const auto grown = [&](const torch::Tensor& stored) {
    torch::Tensor fresh = torch::empty(
        {like.size(0), like.size(1), capacity, like.size(3)}, like.options());
    if (length_ > 0) {
      fresh.narrow(2, 0, length_).copy_(stored.narrow(2, 0, length_));
    }
    return fresh;
  };
  k_ = grown(k_);
  v_ = grown(v_);
}

void KvCache::append(const torch::Tensor& k, const torch::Tensor& v) {
  const torch::NoGradGuard no_grad;
  check(k, v);
  const std::int64_t n = k.size(2);
  if (!k_.defined() || length_ + n > capacity()) {
    reserve(std::max(length_ + n, 2 * capacity()), k);
  }
  k_.narrow(2, length_, n).copy_(k);
  v_.narrow(2, length_, n).copy_(v);
  length_ += n;
}

void KvCache::reset() { *this = {}; }

void KvCache::truncate(std::int64_t length) {
  TORCH_CHECK(length >= 0 && length <= length_, "[KvCache] cannot keep ",
              length, " rows of ", length_);
  TORCH_CHECK(!tail_.defined() || length == 0 || length == length_,
              "[KvCache] cannot keep ", length, " rows of ", length_,
              ": a short convolution has only the tail of all");
  length_ = length;
  if (length == 0) tail_ = torch::Tensor();
}

void KvCache::reorder(const torch::Tensor& index) {
  TORCH_CHECK(index.dim() == 1 && index.scalar_type() == torch::kLong,
              "[KvCache] index of size ", index.sizes(), " and type ",
              index.scalar_type(), " is not i64 [B]");
  if (!k_.defined()) return;
  const torch::NoGradGuard no_grad;
  // The empty end of the storage need not be moved.
  const std::int64_t kept = capacity();
  const torch::Tensor k = keys().index_select(0, index);
  const torch::Tensor v = values().index_select(0, index);
  const std::int64_t rows = length_;
  length_ = 0;
  reserve(kept, k);
  k_.narrow(2, 0, rows).copy_(k);
  v_.narrow(2, 0, rows).copy_(v);
  length_ = rows;
  if (tail_.defined()) tail_ = tail_.index_select(0, index);
}

}  // namespace polyattn::nn
