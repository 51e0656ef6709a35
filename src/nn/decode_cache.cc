#include "polyattn/nn/decode_cache.h"

#include <algorithm>
#include <cstring>

#include "torch/core_errors.h"
#include "torch/parallel.h"
#include "torch/parts.h"

namespace polyattn::nn {
namespace {

void check_step(const torch::Tensor& q, const torch::Tensor& k,
                const torch::Tensor& v) {
  for (const torch::Tensor* t : {&q, &k, &v}) {
    TORCH_CHECK(t->dim() == 4, "[DecodeCache] a tensor of size ", t->sizes(),
                " is not [B, H, N, D]");
    TORCH_CHECK(t->is_cpu(), "[DecodeCache] a tensor is on ", t->device(),
                "; decoding is for the CPU");
    TORCH_CHECK(t->scalar_type() == q.scalar_type(),
                "[DecodeCache] keys or values of type ", t->scalar_type(),
                " != ", q.scalar_type(), " of queries");
    TORCH_CHECK(
        !(at::GradMode::is_enabled() && t->requires_grad()),
        "[DecodeCache] a tensor wants a gradient, which a cache does not pass "
        "on: decode under torch::NoGradGuard");
  }
}

DecodeState make_state(const torch::Tensor& q, const torch::Tensor& k,
                       const torch::Tensor& v, const DecodeCall& call,
                       DecodeMode mode) {
  const bool wide = q.scalar_type() == torch::kDouble;
  return DecodeState({.batch = q.size(0),
                      .heads = q.size(1),
                      .kv_heads = k.size(1),
                      .d = q.size(3),
                      .e = v.size(3)},
                     {.activation = call.activations.front(),
                      .scale = call.scale,
                      .mode = mode,
                      .compute = wide ? DType::kF64 : DType::kF32,
                      .storage = view_of(k).dtype});
}

}  // namespace

torch::Tensor DecodeCache::step(const torch::Tensor& q, const torch::Tensor& k,
                                const torch::Tensor& v,
                                const DecodeCall& call) {
  check_step(q, k, v);
  const auto parts = static_cast<std::int64_t>(call.activations.size());
  TORCH_CHECK(parts == 1 || parts == q.size(1), "[DecodeCache] ", parts,
              " activations for ", q.size(1), " heads");
  TORCH_CHECK(states_.empty() || std::ssize(states_) == parts, "[DecodeCache] ",
              parts, " activations do not follow on ", states_.size());
  // [B, N, H, E] in memory, so that heads lie side by side for what follows.
  torch::Tensor o =
      torch::empty({q.size(0), q.size(2), q.size(1), v.size(3)}, q.options())
          .transpose(1, 2);
  const std::int64_t count = q.size(1) / parts;
  const std::int64_t group =
      k.size(1) == 0 ? 1 : std::max<std::int64_t>(q.size(1) / k.size(1), 1);
  TorchParallel parallel;
  with_torch_errors([&] {
    for (std::int64_t i = 0; i < parts; ++i) {
      const std::int64_t first = i * count;
      const auto own_q = with_dense_rows(heads_of(q, first, count, 1));
      const auto own_k = with_dense_rows(heads_of(k, first, count, group));
      const auto own_v = with_dense_rows(heads_of(v, first, count, group));
      const Activation& activation =
          call.activations[static_cast<std::size_t>(i)];
      if (std::ssize(states_) == i)
        states_.push_back(
            make_state(own_q, own_k, own_v, {{activation}, call.scale}, mode_));
      DecodeState& state = states_[static_cast<std::size_t>(i)];
      TORCH_CHECK(state.options().activation == activation, "[DecodeCache] ",
                  activation.to_string(), " does not follow on ",
                  state.options().activation.to_string());
      state.step({view_of(own_q), view_of(own_k), view_of(own_v)},
                 view_of(heads_of(o, first, count, 1)), parallel);
    }
  });
  length_ += q.size(2);
  return o;
}

std::size_t DecodeCache::bytes() const {
  std::size_t total = 0;
  for (const DecodeState& state : states_) total += state.bytes();
  return total;
}

void DecodeCache::reset() {
  states_.clear();
  length_ = 0;
}

void DecodeCache::reorder(const torch::Tensor& index) {
  TORCH_CHECK(index.dim() == 1 && index.scalar_type() == torch::kLong,
              "[DecodeCache] index of size ", index.sizes(), " and type ",
              index.scalar_type(), " is not i64 [B]");
  const torch::Tensor rows = index.contiguous();
  with_torch_errors([&] {
    for (DecodeState& state : states_)
      state.select({rows.data_ptr<std::int64_t>(),
                    static_cast<std::size_t>(rows.numel())});
  });
}

std::vector<torch::Tensor> DecodeCache::save() const {
  std::vector<torch::Tensor> saved;
  for (const DecodeState& state : states_) {
    const std::vector<std::byte> bytes = state.save();
    saved.push_back(
        torch::empty({static_cast<std::int64_t>(bytes.size())}, torch::kByte));
    std::memcpy(saved.back().data_ptr(), bytes.data(), bytes.size());
  }
  return saved;
}

DecodeCache DecodeCache::load(const std::vector<torch::Tensor>& saved) {
  DecodeCache cache;
  for (const torch::Tensor& part : saved) {
    TORCH_CHECK(part.dim() == 1 && part.scalar_type() == torch::kByte,
                "[DecodeCache] a saved part of size ", part.sizes(),
                " and type ", part.scalar_type(), " is not u8 [n]");
    const torch::Tensor bytes = part.contiguous();
    with_torch_errors([&] {
      cache.states_.push_back(
          DecodeState::load({static_cast<const std::byte*>(bytes.data_ptr()),
                             static_cast<std::size_t>(bytes.numel())}));
    });
    const DecodeState& state = cache.states_.back();
    TORCH_CHECK(cache.states_.size() == 1 ||
                    state.length(0) == cache.states_.front().length(0),
                "[DecodeCache] saved parts of ", state.length(0), " and ",
                cache.states_.front().length(0),
                " tokens are not of one cache");
  }
  if (cache.states_.empty()) return cache;
  cache.mode_ = cache.states_.front().options().mode;
  cache.length_ = cache.states_.front().length(0);
  return cache;
}

}  // namespace polyattn::nn
