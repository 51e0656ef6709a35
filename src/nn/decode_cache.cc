#include "polyattn/nn/decode_cache.h"

#include <algorithm>
#include <cstring>

#include "nn/center_values.h"
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

// log_decay as DecodeState has it, held by `own`.
std::optional<ConstTensor> decay_of(const torch::Tensor& log_decay,
                                    torch::Tensor& own) {
  if (!log_decay.defined()) return {};
  own = log_decay.dim() == 2 ? log_decay.unsqueeze(0) : log_decay;
  own = own.unsqueeze(3);
  return view_of(own);
}

}  // namespace

torch::Tensor DecodeCache::attend(const torch::Tensor& q,
                                  const torch::Tensor& k,
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
        states_.push_back(make_state(
            own_q, own_k, own_v,
            {.activations = {activation}, .scale = call.scale}, mode_));
      DecodeState& state = states_[static_cast<std::size_t>(i)];
      TORCH_CHECK(state.options().activation == activation, "[DecodeCache] ",
                  activation.to_string(), " does not follow on ",
                  state.options().activation.to_string());
      torch::Tensor own_decay = call.log_decay;
      if (parts > 1 && own_decay.defined())
        own_decay = own_decay.narrow(-2, first / group, 1);
      const auto decay = decay_of(own_decay, own_decay);
      state.step({.q = view_of(own_q),
                  .k = view_of(own_k),
                  .v = view_of(own_v),
                  .log_decay = decay},
                 view_of(heads_of(o, first, count, 1)), parallel);
    }
  });
  length_ += q.size(2);
  return o;
}

torch::Tensor DecodeCache::step(const torch::Tensor& q, const torch::Tensor& k,
                                const torch::Tensor& v,
                                const DecodeCall& call) {
  if (!call.center_values) return attend(q, k, v, call);
  const torch::Tensor values = with_ones(v);
  const torch::Tensor o = attend(q, k, values, call);
  torch::Tensor sums = values.cumsum(2, torch::kDouble);
  if (value_sum_.defined()) sums = sums + value_sum_;
  if (sums.size(2) > 0)
    value_sum_ = sums.narrow(2, sums.size(2) - 1, 1).clone();
  return center_output(o, sums.unsqueeze(2));
}

std::size_t DecodeCache::bytes() const {
  std::size_t total = 0;
  for (const DecodeState& state : states_) total += state.bytes();
  for (const torch::Tensor& part : {value_sum_, tail_})
    if (part.defined()) total += part.nbytes();
  return total + last_.bytes();
}

void DecodeCache::reset() { *this = DecodeCache(mode_); }

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
  for (torch::Tensor* part : {&value_sum_, &tail_})
    if (part->defined()) *part = part->index_select(0, rows);
  last_.reorder(rows);
}

std::vector<torch::Tensor> DecodeCache::save() const {
  std::vector<torch::Tensor> saved;
  for (const DecodeState& state : states_) {
    const std::vector<std::byte> bytes = state.save();
    saved.push_back(
        torch::empty({static_cast<std::int64_t>(bytes.size())}, torch::kByte));
    std::memcpy(saved.back().data_ptr(), bytes.data(), bytes.size());
  }
  for (const torch::Tensor& part : {value_sum_, tail_})
    if (part.defined()) saved.push_back(part);
  if (last_.window() > 0) {
    saved.push_back(torch::stack({last_.keys(), last_.values()}));
    saved.push_back(
        torch::tensor({last_.window(), last_.length()}, torch::kLong));
  }
  return saved;
}

void DecodeCache::load_state(const torch::Tensor& saved) {
  TORCH_CHECK(saved.dim() == 1 && saved.scalar_type() == torch::kByte,
              "[DecodeCache] a saved part of size ", saved.sizes(),
              " and type ", saved.scalar_type(), " is not u8 [n]");
  const torch::Tensor bytes = saved.contiguous();
  with_torch_errors([&] {
    states_.push_back(
        DecodeState::load({static_cast<const std::byte*>(bytes.data_ptr()),
                           static_cast<std::size_t>(bytes.numel())}));
  });
  const std::int64_t length = states_.back().length(0);
  TORCH_CHECK(length == states_.front().length(0),
              "[DecodeCache] saved parts of ", length, " and ",
              states_.front().length(0), " tokens are not of one cache");
}

void DecodeCache::load_value_sum(const torch::Tensor& saved) {
  TORCH_CHECK(!states_.empty() && saved.scalar_type() == torch::kDouble &&
                  saved.size(0) == states_.front().shape().batch &&
                  saved.size(1) == states_.front().shape().kv_heads &&
                  saved.size(2) == 1 &&
                  saved.size(3) == states_.front().shape().e,
              "[DecodeCache] a saved sum of values of size ", saved.sizes(),
              " and type ", saved.scalar_type(), " is not of this cache");
  value_sum_ = saved.clone();
}

void DecodeCache::load_tail(const torch::Tensor& saved) {
  TORCH_CHECK(states_.empty() ? last_.window() > 0
                              : saved.size(0) == states_.front().shape().batch,
              "[DecodeCache] a saved tail of size ", saved.sizes(),
              " is not of this cache");
  tail_ = saved.clone();
}

void DecodeCache::load_last(const torch::Tensor& saved,
                            const torch::Tensor& numbers) {
  TORCH_CHECK(numbers.dim() == 1 && numbers.numel() == 2 &&
                  numbers.scalar_type() == torch::kLong && saved.size(0) == 2,
              "[DecodeCache] saved rows of a window of size ", saved.sizes(),
              " with numbers of size ", numbers.sizes(), " and type ",
              numbers.scalar_type(), " are not of a cache");
  last_ =
      KvCache::sliding({saved[0], saved[1]}, numbers[0].item<std::int64_t>(),
                       numbers[1].item<std::int64_t>());
}

DecodeCache DecodeCache::load(const std::vector<torch::Tensor>& saved) {
  DecodeCache cache;
  // What the others are checked against comes first.
  for (std::size_t i = 0; i < saved.size(); ++i) {
    if (saved[i].dim() == 5)
      cache.load_last(saved[i],
                      i + 1 < saved.size() ? saved[i + 1] : torch::empty({0}));
  }
  for (std::size_t i = 0; i < saved.size(); ++i) {
    const torch::Tensor& part = saved[i];
    if (part.dim() == 5) {
      ++i;  // and its numbers
    } else if (part.dim() == 4) {
      cache.load_value_sum(part);
    } else if (part.dim() == 3) {
      cache.load_tail(part);
    } else {
      cache.load_state(part);
    }
  }
  if (cache.states_.empty()) return cache;
  cache.mode_ = cache.states_.front().options().mode;
  cache.length_ = cache.states_.front().length(0);
  TORCH_CHECK(
      cache.last_.window() == 0 || cache.last_.length() == cache.length_,
      "[DecodeCache] saved rows of a window of ", cache.last_.length(),
      " tokens and sums of ", cache.length_, " are not of one cache");
  return cache;
}

}  // namespace polyattn::nn
