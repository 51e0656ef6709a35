#include "polyattn/nn/kv_cache.h"

#include <torch/utils.h>

#include <algorithm>

namespace polyattn::nn {

torch::Tensor KvCache::keys() const {
  return k_.defined() ? k_.narrow(2, 0, rows_) : k_;
}

torch::Tensor KvCache::values() const {
  return v_.defined() ? v_.narrow(2, 0, rows_) : v_;
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
    if (rows_ > 0) {
      fresh.narrow(2, 0, rows_).copy_(stored.narrow(2, 0, rows_));
    }
    return fresh;
  };
  k_ = grown(k_);
  v_ = grown(v_);
}

void KvCache::append(const torch::Tensor& k, const torch::Tensor& v) {
  const torch::NoGradGuard no_grad;
  check(k, v);
  TORCH_CHECK(window_ == 0, "[KvCache] rows of a window of ", window_,
              " cannot be followed by rows that see all");
  const std::int64_t n = k.size(2);
  if (!k_.defined() || rows_ + n > capacity()) {
    reserve(std::max(rows_ + n, 2 * capacity()), k);
  }
  k_.narrow(2, rows_, n).copy_(k);
  v_.narrow(2, rows_, n).copy_(v);
  rows_ += n;
  length_ += n;
}

KvCache::Rows KvCache::slide(const torch::Tensor& k, const torch::Tensor& v,
                             std::int64_t window) {
  const torch::NoGradGuard no_grad;
  check(k, v);
  TORCH_CHECK(window >= 1, "[KvCache] window ", window, " < 1");
  TORCH_CHECK(length_ == 0 || window_ == window, "[KvCache] a window of ",
              window, " does not follow on one of ", window_);
  const auto seen = [](const torch::Tensor& kept, const torch::Tensor& fresh) {
    return kept.defined() ? torch::cat({kept, fresh}, 2) : fresh;
  };
  const Rows all = {seen(keys(), k), seen(values(), v)};
  rows_ = std::min(all.k.size(2), window - 1);
  const auto last = [&](const torch::Tensor& rows) {
    return rows.narrow(2, rows.size(2) - rows_, rows_)
        .clone(at::MemoryFormat::Contiguous);
  };
  k_ = last(all.k);
  v_ = last(all.v);
  window_ = window;
  length_ += k.size(2);
  return all;
}

KvCache KvCache::sliding(const Rows& kept, std::int64_t window,
                         std::int64_t length) {
  KvCache cache;
  cache.check(kept.k, kept.v);
  TORCH_CHECK(window >= 1 && length >= 0 &&
                  kept.k.size(2) == std::min(length, window - 1),
              "[KvCache] ", kept.k.size(2),
              " rows are not those that a window "
              "of ",
              window, " keeps of ", length);
  cache.k_ = kept.k.clone(at::MemoryFormat::Contiguous);
  cache.v_ = kept.v.clone(at::MemoryFormat::Contiguous);
  cache.rows_ = kept.k.size(2);
  cache.window_ = window;
  cache.length_ = length;
  return cache;
}

std::size_t KvCache::bytes() const {
  std::size_t total = 0;
  for (const torch::Tensor& part : {k_, v_, tail_})
    if (part.defined()) total += part.nbytes();
  return total;
}

void KvCache::reset() { *this = {}; }

void KvCache::truncate(std::int64_t length) {
  TORCH_CHECK(length >= 0 && length <= length_, "[KvCache] cannot keep ",
              length, " rows of ", length_);
  TORCH_CHECK(!tail_.defined() || length == 0 || length == length_,
              "[KvCache] cannot keep ", length, " rows of ", length_,
              ": a short convolution has only the tail of all");
  TORCH_CHECK(window_ == 0 || length == 0 || length == length_,
              "[KvCache] cannot keep ", length, " rows of ", length_,
              ": a window has only the last ", rows_);
  if (length == 0) tail_ = torch::Tensor();
  if (length < length_) rows_ = length;
  length_ = length;
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
  const std::int64_t rows = rows_;
  rows_ = 0;
  reserve(kept, k);
  k_.narrow(2, 0, rows).copy_(k);
  v_.narrow(2, 0, rows).copy_(v);
  rows_ = rows;
  if (tail_.defined()) tail_ = tail_.index_select(0, index);
}

}  // namespace polyattn::nn
