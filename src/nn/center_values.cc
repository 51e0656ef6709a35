#include "nn/center_values.h"

#include <cmath>

#include "nn/center_causal.h"

namespace polyattn::nn {
namespace {

// Sums over many values want f32 at least.
torch::ScalarType wide_type(const torch::Tensor& t) {
  return c10::promoteTypes(torch::kFloat, t.scalar_type());
}

// Queries [B, H, ...] by the head of keys that they use: [B, G, R, ...].
torch::Tensor by_group(const torch::Tensor& t, std::int64_t groups) {
  return t.unflatten(1, {groups, t.size(1) / groups});
}

// True where a row may see a key: [B, G, R, N, M], each of them or 1.
torch::Tensor visible(torch::Tensor mask, std::int64_t groups) {
  if (mask.scalar_type() != torch::kBool) mask = mask.ne(-INFINITY);
  while (mask.dim() < 4) mask = mask.unsqueeze(0);
  return mask.size(1) == 1 ? mask.unsqueeze(2) : by_group(mask, groups);
}

// Sums of v [B, G, M, E] over the keys that each row sees: [B, G, R, N, E]. In
// linear time unless the mask has rows of its own.
torch::Tensor visible_sums(const torch::Tensor& v, const CenterCall& call) {
  torch::Tensor keys = v.to(wide_type(v)).unsqueeze(2);
  const std::int64_t m = v.size(2), before = m - call.rows;
  const bool causal = call.causal != Causal::kNone;
  torch::Tensor seen;
  if (call.mask.defined()) seen = visible(call.mask, v.size(1));
  if (seen.defined() && seen.size(3) > 1) {
    auto sizes = seen.sizes().vec();
    sizes.back() = m;
    seen = seen.expand(sizes);
    if (causal) seen = seen.tril(before);
    return torch::matmul(seen.to(keys.scalar_type()), keys);
  }
  // Filled, not multiplied by 0: padding may hold infinities.
  if (seen.defined())
    keys = keys.masked_fill(seen.transpose(3, 4).logical_not(), 0);
  return causal ? keys.cumsum(3).narrow(3, before, call.rows)
                : keys.sum(3, /*keepdim=*/true);
}

// Sums of values and ones to means; 0 where there is no key.
torch::Tensor means_of(const torch::Tensor& sums) {
  const std::int64_t e = sums.size(-1) - 1;
  return sums.narrow(-1, 0, e) / sums.narrow(-1, e, 1).clamp_min(1);
}

}  // namespace

torch::Tensor with_ones(const torch::Tensor& v) {
  return torch::constant_pad_nd(v, {0, 1}, 1);
}

torch::Tensor center_output(const torch::Tensor& o, const torch::Tensor& sums) {
  const std::int64_t e = o.size(-1) - 1;
  const torch::Tensor grouped = by_group(o, sums.size(1));
  const torch::Tensor rest = 1 - grouped.narrow(-1, e, 1);
  return (grouped.narrow(-1, 0, e) + rest * means_of(sums))
      .to(o.scalar_type())
      .flatten(1, 2);
}

CenteredValues::CenteredValues(const torch::Tensor& v, const CenterCall& call) {
  if (!call.mask.defined() && call.causal == Causal::kNone) {
    mean_ = v.mean(2, /*keepdim=*/true, wide_type(v)).unsqueeze(2);
  } else {
    values_ = with_ones(v);
    if (!call.mask.defined() && call.rows == v.size(2) && is_center_fused(v)) {
      whole_ = v;
      return;
    }
    sums_ = visible_sums(values_, call);
    if (sums_.size(2) > 1 || sums_.size(3) > 1) return;
    mean_ = means_of(sums_);
  }
  values_ = (v - mean_.squeeze(2)).to(v.scalar_type());
}

torch::Tensor CenteredValues::output(const torch::Tensor& o) const {
  if (whole_.defined()) return center_causal(o, whole_);
  if (!mean_.defined()) return center_output(o, sums_);
  return (by_group(o, mean_.size(1)) + mean_).to(o.scalar_type()).flatten(1, 2);
}

}  // namespace polyattn::nn
